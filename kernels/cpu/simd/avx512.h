// The vector layer on AVX-512 with VNNI: 16 lanes. See simd.h for what each function promises. LAYBY_BF16: with
// products of bfloat16 pairs too.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace layby {
namespace {
namespace simd {

constexpr int LANES = 16;
constexpr int TILE_GROUPS = 2;            // groups of outputs that a product computes together
constexpr int PRODUCT_VECTORS = 2;        // vectors of outputs summed together where rows are quantised
constexpr int FLOAT_VECTORS = 2;          // the same for floats
constexpr int QUANTIZED_TILE_ROWS = 4;    // rows of a tile of quantised rows, at most
constexpr int INTEGER_SUMS = 16;          // that stand in registers together
constexpr int ATTENTION_QUERIES = 6;      // most queries that share a load of a key or value
constexpr int REGISTERS = 32;

using F = __m512;
using I = __m512i;
using Codes = __m512i;
using SignedCodes = __m512i;

inline F zero() { return _mm512_setzero_ps(); }
inline F set1(float x) { return _mm512_set1_ps(x); }
inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F x) { _mm512_storeu_ps(p, x); }
inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F max(F a, F b) { return _mm512_max_ps(a, b); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline F abs(F a) { return _mm512_abs_ps(a); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline bool any_nan(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0; }

inline float sum_of_lanes(F x) {
  const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_of_lanes(F x) { return _mm512_reduce_max_ps(x); }

inline I to_int(F x) { return _mm512_cvtps_epi32(x); }
inline F to_float(I x) { return _mm512_cvtepi32_ps(x); }
inline I set1_int(int32_t x) { return _mm512_set1_epi32(x); }
inline I add(I a, I b) { return _mm512_add_epi32(a, b); }
inline I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
template <int BITS>
inline I shift_up(I x) { return _mm512_slli_epi32(x, BITS); }
template <int BITS>
inline I shift_down(I x) { return _mm512_srai_epi32(x, BITS); }
inline F whole(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline F times_power(F x, F n) { return _mm512_scalef_ps(x, n); }
inline void store_bytes(int8_t* p, I x) { _mm_storeu_si128((__m128i*)p, _mm512_cvtsepi32_epi8(x)); }

inline F load_half(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline uint16_t to_half(float x) {
  return (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT));
}
inline F load_unsigned_bytes(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
inline F load_signed_bytes(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
inline F load_low_nibbles(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_and_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)), _mm512_set1_epi32(15)));
}
inline F load_high_nibbles(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_srli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)), 4));
}
inline F load_exponents(const uint8_t* p) {
  // 2^(e - 128): e = 0 and 1 are subnormal, and e is at most 254.
  const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  return _mm512_castsi512_ps(
      _mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), tiny));
}

inline F low_bfloat(Codes pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
inline F high_bfloat(Codes pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}
#if defined(LAYBY_BF16)
inline F add_product_bfloat(F sum, Codes pairs, const uint32_t* x) {
  return _mm512_dpbf16_ps(sum, (__m512bh)pairs, (__m512bh)_mm512_set1_epi32((int)*x));
}
#endif

inline Codes load_codes(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline Codes either(Codes a, Codes b) { return _mm512_or_si512(a, b); }
inline Codes masked(Codes a, uint8_t mask) { return _mm512_and_si512(a, _mm512_set1_epi8((char)mask)); }
template <int BITS>
inline Codes shift_right(Codes a) { return _mm512_srli_epi16(a, BITS); }
template <int BITS>
inline Codes shift_left(Codes a) { return _mm512_slli_epi16(a, BITS); }
inline Codes lookup(const uint8_t* table, Codes a) {
  const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)table));
  return _mm512_shuffle_epi8(all, a);
}

inline I no_sum() { return _mm512_setzero_si512(); }
inline I add_product_6bit(I sum, Codes codes, const int32_t* x) {
  return _mm512_dpbusd_epi32(sum, codes, _mm512_set1_epi32(*x));
}
// VNNI takes unsigned times signed, so signed codes are moved up by SIGNED_OFFSET.
inline SignedCodes as_signed(Codes codes) { return _mm512_xor_si512(codes, _mm512_set1_epi8((char)0x80)); }
constexpr int SIGNED_OFFSET = 128;
inline I add_product_signed(I sum, SignedCodes codes, const int32_t* x) {
  return _mm512_dpbusd_epi32(sum, codes, _mm512_set1_epi32(*x));
}

#define LAYBY_NIBBLE_PAIRS

inline I add_product_8bit(I sum, Codes codes, const int32_t* x) { return add_product_6bit(sum, codes, x); }
inline I first_fours(I a, I b) { return _mm512_shuffle_i32x4(a, b, 0x88); }
inline I second_fours(I a, I b) { return _mm512_shuffle_i32x4(a, b, 0xdd); }

inline int32_t sum_of_lanes(I x) { return _mm512_reduce_add_epi32(x); }

LAYBY_ALWAYS_INLINE void prefetch(const void* p) { _mm_prefetch((const char*)p, _MM_HINT_T0); }

}  // namespace simd
}  // namespace
}  // namespace layby
