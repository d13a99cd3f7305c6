// Picks the vector layer that this file is compiled for, and says what every layer provides.
//
// Kernels are written once, on vectors of LANES floats (F) or 32-bit integers (I); 16 outputs, positions or values
// are always handled together as SUBS vectors, and every sum runs in an order that does not depend on LANES. Each
// function below is one instruction or a short fixed sequence; nothing is left for the compiler to contract, so a
// kernel's arithmetic is what its source says.
//
//   add sub mul div max min abs fma   lane by lane, IEEE; fma rounds once (the portable layer: twice)
//   any_nan(a, b)                     whether any lane of either is not a number
//   sum_of_lanes                      halves added until one is left;  max_of_lanes
//   to_int, whole                     nearest, ties to even;  times_power(x, n): x * 2^n, n whole, -127 < n < 128
//   load_half, ...                    LANES stored values as floats;  load_exponents: 2^(e - 128) of a byte e
//   Codes                             LANES groups of 4 bytes: 4 consecutive weights of LANES outputs
//   low_bfloat, high_bfloat           Codes taken for pairs of bfloat16: the first of each, the second
//   add_product_bfloat                only with LAYBY_BF16: sum += such a pair times a pair of a row
//   shift_up, shift_down              32-bit integers times or divided by 2^BITS, rounded down
//   add_product_6bit                  sum += codes (0..63) times 4 digits of a row, the same 4 in each lane
//   add_product_4bit, add_pairs       only with LAYBY_SHORT_SUMS: the same for codes to 15, 8 times to a sum of pairs
//   add_product_signed                the same for bytes in [-128, 127], taken for SIGNED_OFFSET more than they are
//   add_product_8bit                  only with LAYBY_NIBBLE_PAIRS: the same for codes to 255; first_fours(a, b),
//                                     second_fours: lanes 0 to 3 of every 8 of a, then of b; lanes 4 to 7
//   add_product_pair                  only with LAYBY_I8MM: two rows and two vectors of codes, of any kind, at once
//
// Everything is in an unnamed namespace, and variant files use no inline function of the standard library: a
// function compiled for one instruction set must never be linked into code that runs without it.
#pragma once

// Small loops over rows and vectors must disappear, or their arrays live in memory; plain C++ gains nothing by it.
#if defined(__clang__) && !defined(LAYBY_SIMD_PORTABLE)
#define LAYBY_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(LAYBY_SIMD_PORTABLE)
#define LAYBY_UNROLL _Pragma("GCC unroll 8")
#else
#define LAYBY_UNROLL
#endif

// For functions that only prefetch: GCC takes a call of one for a call without effect and drops it.
#if defined(_MSC_VER)
#define LAYBY_ALWAYS_INLINE __forceinline
#else
#define LAYBY_ALWAYS_INLINE inline __attribute__((always_inline))
#endif

#if defined(LAYBY_SIMD_AVX512)
#include "simd/avx512.h"
#elif defined(LAYBY_SIMD_AVX2)
#include "simd/avx2.h"
#elif defined(LAYBY_SIMD_NEON)
#include "simd/neon.h"
#else
#include "simd/portable.h"
#endif

namespace layby {
namespace {
namespace simd {

constexpr int WIDTH = 16;
constexpr int SUBS = WIDTH / LANES;

// The sum of 16 values held in SUBS vectors, in one order for every LANES: halves are added until one is left.
inline float sum16(const F* parts) {
  F x[SUBS];
  for (int s = 0; s < SUBS; ++s) x[s] = parts[s];
  for (int half = SUBS / 2; half > 0; half /= 2)
    for (int s = 0; s < half; ++s) x[s] = add(x[s], x[s + half]);
  return sum_of_lanes(x[0]);
}

inline int32_t total16(const I* parts) {
  I total = parts[0];
  for (int s = 1; s < SUBS; ++s) total = add(total, parts[s]);
  return sum_of_lanes(total);
}

inline float max16(const F* parts) {
  F most = parts[0];
  for (int s = 1; s < SUBS; ++s) most = max(most, parts[s]);
  return max_of_lanes(most);
}

// e^x for x in [-87.3, 88], below that as at -87.3; not a number stays so. Source of the polynomial: Cephes, expf.
inline F exp_to_88(F x) {
  x = max(set1(-87.3f), x);  // x second: max(a, b) is b when one is not a number
  const F n = whole(mul(x, set1(1.44269504f)));
  F r = fma(n, set1(-0.693359375f), x);
  r = fma(n, set1(2.12194440e-4f), r);
  F p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(p, mul(r, r), add(r, set1(1.0f)));
  return times_power(p, n);
}

// The same, above 88 as at 88.
inline F exp(F x) { return exp_to_88(min(set1(88.0f), x)); }

inline float exp_of(float x) {
  float lanes[LANES];
  store(lanes, exp(set1(x)));
  return lanes[0];
}

}  // namespace simd
}  // namespace
}  // namespace layby
