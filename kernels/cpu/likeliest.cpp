#include "likeliest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace layby {
namespace {

constexpr int64_t LANES = 16;    // plain loops over so many floats become vector instructions of any CPU
constexpr int64_t STRETCH = 64;  // values that have one maximum
constexpr float INFINITE = std::numeric_limits<float>::infinity();

// What a thread keeps between rows, so that none of them asks the system for memory.
struct Scratch {
  std::vector<float> peaks;  // of each stretch
  std::vector<float> sorted;
  std::vector<int32_t> ids;
};

// The maximum of each stretch of the row; false where a value is no number below +inf.
bool find_peaks(const float* row, int64_t width, std::vector<float>& peaks) {
  peaks.clear();
  int32_t odd[LANES] = {};
  int64_t at = 0;
  for (; at + STRETCH <= width; at += STRETCH) {
    float most[LANES];
    std::fill_n(most, LANES, -INFINITE);
    for (const float* x = row + at; x < row + at + STRETCH; x += LANES)
      for (int64_t lane = 0; lane < LANES; ++lane) {
        most[lane] = x[lane] > most[lane] ? x[lane] : most[lane];
        odd[lane] |= !(x[lane] < INFINITE);
      }
    peaks.push_back(*std::max_element(most, most + LANES));
  }
  if (at < width) peaks.push_back(-INFINITE);
  for (; at < width; ++at) {
    peaks.back() = std::max(peaks.back(), row[at]);
    odd[0] |= !(row[at] < INFINITE);
  }
  return std::all_of(odd, odd + LANES, [](int32_t one) { return one == 0; });
}

// A value that at least `wanted` of the row reach: so many stretches have a peak not below it.
float floor_of(const Scratch& scratch, std::vector<float>& sorted, int32_t wanted) {
  if (static_cast<int64_t>(scratch.peaks.size()) < wanted) return -INFINITE;
  sorted = scratch.peaks;
  std::nth_element(sorted.begin(), sorted.begin() + wanted - 1, sorted.end(), std::greater<float>());
  return sorted[wanted - 1];
}

// Ids, ascending, of all values above -inf that reach the floor.
void find_reaching(const float* row, int64_t width, float floor, const std::vector<float>& peaks,
                   std::vector<int32_t>& ids) {
  ids.clear();
  for (int64_t stretch = 0; stretch < static_cast<int64_t>(peaks.size()); ++stretch) {
    if (!(peaks[stretch] >= floor)) continue;
    const int64_t end = std::min(width, (stretch + 1) * STRETCH);
    for (int64_t i = stretch * STRETCH; i < end; ++i)
      if (row[i] >= floor && row[i] > -INFINITE) ids.push_back(static_cast<int32_t>(i));
  }
}

}  // namespace

int32_t find_likeliest(const float* row, int64_t width, int32_t wanted, const LikeliestPlaces& to) {
  thread_local Scratch scratch;
  if (!find_peaks(row, width, scratch.peaks)) return 0;
  find_reaching(row, width, floor_of(scratch, scratch.sorted, wanted), scratch.peaks, scratch.ids);
  std::vector<int32_t>& ids = scratch.ids;
  const auto is_likelier = [row](int32_t a, int32_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); };
  if (static_cast<int64_t>(ids.size()) > wanted) {
    std::nth_element(ids.begin(), ids.begin() + wanted, ids.end(), is_likelier);
    ids.resize(wanted);
    std::sort(ids.begin(), ids.end());
  }
  const int32_t count = static_cast<int32_t>(ids.size());
  for (int32_t i = 0; i < count; ++i) {
    to.ids[i] = ids[i];
    to.values[i] = row[ids[i]];
    to.ranking[i] = i;
  }
  std::sort(to.ranking, to.ranking + count, [&](int32_t a, int32_t b) { return is_likelier(ids[a], ids[b]); });
  return count;
}

void keep_allowed(float* row, int64_t width, const uint32_t* allowed, int64_t count) {
  constexpr int64_t BITS = 32;
  count = std::clamp<int64_t>(count, 0, width);
  for (int64_t begin = 0; begin < count; begin += BITS) {
    const uint32_t word = allowed[begin / BITS];
    const int64_t end = std::min(begin + BITS, count);
    if (word == 0) {  // most of them are
      std::fill(row + begin, row + end, -INFINITE);
    } else {
      for (int64_t i = begin; i < end; ++i) row[i] = word >> (i - begin) & 1 ? row[i] : -INFINITE;
    }
  }
  std::fill(row + count, row + width, -INFINITE);
}

}  // namespace layby
