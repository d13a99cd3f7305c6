#include "page_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#define LAYBY_HAS_STREAMING
#endif

namespace layby {
namespace {

// What a thread copies at a time: small enough for all to end together, large enough for memory to be read in rows.
constexpr int64_t PIECE_BYTES = 256 << 10;
constexpr int64_t MOST_CHUNKS = 1 << 19;  // a team takes no more than twice as many
// Copies of so much are gone from the caches anyway before anybody reads them.
constexpr int64_t STREAMED_BYTES = 4 << 20;

#if defined(LAYBY_HAS_STREAMING)
// Writes past the caches, which otherwise read what is to be overwritten first.
void copy_streaming(const uint8_t* from, uint8_t* to, int64_t bytes) {
  const int64_t head = std::min(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63));
  std::memcpy(to, from, head);
  const int64_t end = head + (bytes - head) / 64 * 64;
  for (int64_t at = head; at < end; at += 64) {
    const __m128i* in = reinterpret_cast<const __m128i*>(from + at);
    __m128i* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + end, from + end, bytes - end);
  _mm_sfence();  // such writes are not in order with what tells others of them
}
#else
void copy_streaming(const uint8_t* from, uint8_t* to, int64_t bytes) { std::memcpy(to, from, bytes); }
#endif

class PageCopy final : public Job {
 public:
  PageCopy(const Pages<const uint8_t>& from, const Pages<uint8_t>& to, PageCount count)
      : from_(from), to_(to), count_(count), is_streaming_(count.pages * count.page_bytes >= STREAMED_BYTES) {
    const int64_t wanted = (count.page_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    pieces_ = std::max(int64_t{1}, std::min(wanted, MOST_CHUNKS / std::max(int64_t{1}, count.pages)));
    piece_bytes_ = ((count.page_bytes + pieces_ - 1) / pieces_ + 63) / 64 * 64;
  }

  int phases() const override { return 1; }
  int64_t chunks(int) override { return count_.pages * pieces_; }
  void run(int, int64_t chunk, int) override {
    const int64_t page = chunk / pieces_;
    const int64_t begin = std::min(count_.page_bytes, chunk % pieces_ * piece_bytes_);
    const int64_t bytes = std::min(count_.page_bytes - begin, piece_bytes_);
    const uint8_t* from = at(from_, page) + begin;
    uint8_t* to = at(to_, page) + begin;
    if (is_streaming_)
      copy_streaming(from, to, bytes);
    else
      std::memcpy(to, from, bytes);
  }

 private:
  template <class Byte>
  Byte* at(const Pages<Byte>& pages, int64_t index) const {
    return pages.memory + (pages.places ? pages.places[index] : index) * count_.page_bytes;
  }

  Pages<const uint8_t> from_;
  Pages<uint8_t> to_;
  PageCount count_;
  int64_t pieces_, piece_bytes_;  // of a page
  bool is_streaming_;
};

}  // namespace

void copy_pages(Team* team, const Pages<const uint8_t>& from, const Pages<uint8_t>& to, PageCount count) {
  PageCopy job(from, to, count);
  if (team && job.chunks(0) <= MOST_CHUNKS) return team->run(job);
  for (int64_t chunk = 0; chunk < job.chunks(0); ++chunk) job.run(0, chunk, 0);
}

}  // namespace layby
