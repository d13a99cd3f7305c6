// The vector layer on 64-bit Arm with dot products (Armv8.2 dotprod): 4 lanes. See simd.h. LAYBY_I8MM: with products of
// small matrices too (Armv8.6 i8mm).
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace layby {
namespace {
namespace simd {

constexpr int LANES = 4;
constexpr int TILE_GROUPS = 1;
constexpr int PRODUCT_VECTORS = 1;
constexpr int FLOAT_VECTORS = 1;
constexpr int QUANTIZED_TILE_ROWS = 8;
constexpr int INTEGER_SUMS = 16;
constexpr int ATTENTION_QUERIES = 6;
constexpr int REGISTERS = 32;

using F = float32x4_t;
using I = int32x4_t;
using Codes = uint8x16_t;

inline F zero() { return vdupq_n_f32(0.0f); }
inline F set1(float x) { return vdupq_n_f32(x); }
inline F load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, F x) { vst1q_f32(p, x); }
inline F add(F a, F b) { return vaddq_f32(a, b); }
inline F sub(F a, F b) { return vsubq_f32(a, b); }
inline F mul(F a, F b) { return vmulq_f32(a, b); }
inline F div(F a, F b) { return vdivq_f32(a, b); }
inline F max(F a, F b) { return vmaxq_f32(a, b); }
inline F min(F a, F b) { return vminq_f32(a, b); }
inline F abs(F a) { return vabsq_f32(a); }
inline F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
inline bool any_nan(F a, F b) { return vminvq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b))) == 0; }

inline float sum_of_lanes(F x) {
  const float32x2_t two = vadd_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float max_of_lanes(F x) { return vmaxvq_f32(x); }

inline I to_int(F x) { return vcvtnq_s32_f32(x); }
inline F to_float(I x) { return vcvtq_f32_s32(x); }
inline I set1_int(int32_t x) { return vdupq_n_s32(x); }
inline I add(I a, I b) { return vaddq_s32(a, b); }
inline I sub(I a, I b) { return vsubq_s32(a, b); }
template <int BITS>
inline I shift_up(I x) { return vshlq_n_s32(x, BITS); }
template <int BITS>
inline I shift_down(I x) { return vshrq_n_s32(x, BITS); }
inline int32_t sum_of_lanes(I x) { return vaddvq_s32(x); }
inline F whole(F x) { return vrndnq_f32(x); }
inline F times_power(F x, F n) {
  const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
  return vmulq_f32(x, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
}
inline void store_bytes(int8_t* p, I x) {
  const int16x4_t words = vqmovn_s32(x);
  const int8x8_t bytes = vqmovn_s16(vcombine_s16(words, words));
  vst1_lane_s32((int32_t*)p, vreinterpret_s32_s8(bytes), 0);
}

inline F load_half(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
inline uint16_t to_half(float x) {
  return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0);
}
inline uint32x4_t widen(const uint8_t* p) {
  const uint8x8_t bytes = vreinterpret_u8_u32(vld1_dup_u32((const uint32_t*)p));
  return vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
}
inline F load_unsigned_bytes(const uint8_t* p) { return vcvtq_f32_u32(widen(p)); }
inline F load_signed_bytes(const uint8_t* p) {
  const int8x8_t bytes = vreinterpret_s8_u32(vld1_dup_u32((const uint32_t*)p));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
}
inline F load_low_nibbles(const uint8_t* p) { return vcvtq_f32_u32(vandq_u32(widen(p), vdupq_n_u32(15))); }
inline F load_high_nibbles(const uint8_t* p) { return vcvtq_f32_u32(vshrq_n_u32(widen(p), 4)); }
inline F load_exponents(const uint8_t* p) {
  const uint32x4_t e = widen(p);
  const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
  const uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(e));
  return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), tiny, normal));
}

inline F low_bfloat(Codes pairs) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u8(pairs), 16)); }
inline F high_bfloat(Codes pairs) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u8(pairs), vdupq_n_u32(0xffff0000)));
}

inline Codes load_codes(const uint8_t* p) { return vld1q_u8(p); }
inline Codes either(Codes a, Codes b) { return vorrq_u8(a, b); }
inline Codes masked(Codes a, uint8_t mask) { return vandq_u8(a, vdupq_n_u8(mask)); }
template <int BITS>
inline Codes shift_right(Codes a) { return vshrq_n_u8(a, BITS); }
template <int BITS>
inline Codes shift_left(Codes a) { return vshlq_n_u8(a, BITS); }
inline Codes lookup(const uint8_t* table, Codes a) { return vqtbl1q_u8(vld1q_u8(table), a); }

inline I no_sum() { return vdupq_n_s32(0); }
inline I add_product_6bit(I sum, Codes codes, const int32_t* x) {
  return vdotq_s32(sum, vreinterpretq_s8_u8(codes), vreinterpretq_s8_s32(vdupq_n_s32(*x)));
}

using SignedCodes = Codes;
inline SignedCodes as_signed(Codes codes) { return codes; }
constexpr int SIGNED_OFFSET = 0;
inline I add_product_signed(I sum, SignedCodes codes, const int32_t* x) { return add_product_6bit(sum, codes, x); }

#if defined(LAYBY_I8MM)

// Two rows at once: one instruction multiplies 2 outputs with 2 rows over 8 inputs.
struct PairCodes {
  int8x16_t low, high;  // outputs 0, 1 and 2, 3; 8 inputs of each
};
struct PairSum {
  int32x4_t low, high;  // [output][row]
};
inline PairCodes pair_codes(const Codes* two) {
  const int32x4_t a = vreinterpretq_s32_u8(two[0]), b = vreinterpretq_s32_u8(two[1]);
  return {vreinterpretq_s8_s32(vzip1q_s32(a, b)), vreinterpretq_s8_s32(vzip2q_s32(a, b))};
}
inline PairSum no_pairs() { return {no_sum(), no_sum()}; }
template <int BITS>
inline PairSum shift_up(PairSum x) { return {shift_up<BITS>(x.low), shift_up<BITS>(x.high)}; }
inline PairSum add_product_pair(PairSum sum, PairCodes codes, const int32_t* first, const int32_t* second) {
  const int32x2_t a = vld1_s32(first), b = vld1_s32(second);
  const int8x16_t x = vreinterpretq_s8_s32(vcombine_s32(vzip1_s32(a, b), vzip2_s32(a, b)));
  return {vmmlaq_s32(sum.low, codes.low, x), vmmlaq_s32(sum.high, codes.high, x)};
}
inline I total_first(PairSum sum) { return vuzp1q_s32(sum.low, sum.high); }
inline I total_second(PairSum sum) { return vuzp2q_s32(sum.low, sum.high); }

#endif

LAYBY_ALWAYS_INLINE void prefetch(const void* p) { __builtin_prefetch(p); }

}  // namespace simd
}  // namespace
}  // namespace layby
