#include "parking.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#else
#include <condition_variable>
#include <mutex>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace layby {

#if defined(__linux__)

void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

#else

namespace {
struct Bed {
  std::mutex mutex;
  std::condition_variable changed;
};
Bed& bed() {
  static Bed one;
  return one;
}
}  // namespace

void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) {
  std::unique_lock<std::mutex> lock(bed().mutex);
  bed().changed.wait(lock, [&] { return word.load() != seen; });
}

void wake_all(std::atomic<uint32_t>&) {
  { std::lock_guard<std::mutex> lock(bed().mutex); }
  bed().changed.notify_all();
}

#endif

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ __volatile__("yield");
#endif
}

void fetch(const uint8_t* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#elif defined(_M_X64)
  _mm_prefetch(reinterpret_cast<const char*>(address), _MM_HINT_T0);
#endif
}

}  // namespace layby
