// Floats as IEEE has them while a step runs: nearest, tiny numbers kept. Other code in the process may have changed
// the mode of the calling thread (a library built with fast-math does when it is loaded), and then a chunk would get
// other bits there than on a helper.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace layby {

class PlainFloats {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  PlainFloats() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }  // all exceptions masked, nothing flushed to zero
  ~PlainFloats() { _mm_setcsr(static_cast<unsigned>(before_)); }
#elif defined(__aarch64__) && defined(__GNUC__)
  PlainFloats() {
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(before_));
    __asm__ __volatile__("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~PlainFloats() { __asm__ __volatile__("msr fpcr, %0" : : "r"(before_)); }
#else
  PlainFloats() : before_(0) {}
#endif
  PlainFloats(const PlainFloats&) = delete;
  PlainFloats& operator=(const PlainFloats&) = delete;

 private:
  uint64_t before_;
};

}  // namespace layby
