#include "draw.h"

#include <algorithm>
#include <cmath>

namespace layby {
namespace {

constexpr uint32_t MULTIPLIERS[2] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t KEY_STEPS[2] = {0x9E3779B9, 0xBB67AE85};
constexpr int ROUNDS = 10;

// How many of the ranking top-p and min-p leave. Both see the probabilities of all that were found.
int32_t count_likely(const LaybyWish& wish, const LikeliestPlaces& found, const double* weights, int32_t count) {
  double total = 0, reached = 0;
  for (int32_t i = 0; i < count; ++i) total += weights[i];
  for (int32_t kept = 0; kept < count; ++kept) {
    const double weight = weights[found.ranking[kept]];
    if (weight < wish.min_p) return kept;
    reached += weight;
    if (wish.top_p < 1 && reached >= wish.top_p * total) return kept + 1;
  }
  return count;
}

}  // namespace

// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
double uniform(uint64_t seed, uint64_t position) {
  uint32_t c[4] = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < ROUNDS; ++round) {
    const uint64_t even = uint64_t{MULTIPLIERS[0]} * c[0], odd = uint64_t{MULTIPLIERS[1]} * c[2];
    const uint32_t first = static_cast<uint32_t>(odd >> 32) ^ c[1] ^ key[0];
    const uint32_t third = static_cast<uint32_t>(even >> 32) ^ c[3] ^ key[1];
    c[0] = first, c[1] = static_cast<uint32_t>(odd), c[2] = third, c[3] = static_cast<uint32_t>(even);
    for (int i = 0; i < 2; ++i) key[i] += KEY_STEPS[i];
  }
  return static_cast<double>((uint64_t{c[0]} << 32 | c[1]) >> 11) * 0x1p-53;
}

int32_t draw(const LaybyWish& wish, const LikeliestPlaces& found, int32_t count) {
  if (count == 0 || found.ids[count - 1] >= wish.vocabulary) return -1;
  if (wish.temperature == 0) return found.ids[found.ranking[0]];
  double weights[LAYBY_MOST_LIKELIEST], ends[LAYBY_MOST_LIKELIEST];
  const double peak = found.values[found.ranking[0]];
  for (int32_t i = 0; i < count; ++i) weights[i] = std::exp(found.values[i] - peak);
  const int32_t likely = count_likely(wish, found, weights, count);
  std::fill_n(weights, count, 0.0);
  for (int32_t i = 0; i < likely; ++i) {
    const int32_t place = found.ranking[i];
    weights[place] = std::exp((found.values[place] - peak) / wish.temperature);
  }
  double sum = 0;
  for (int32_t i = 0; i < count; ++i) ends[i] = sum += weights[i];
  return found.ids[std::upper_bound(ends, ends + count, uniform(wish.seed, wish.position) * sum) - ends];
}

}  // namespace layby
