// The vector layer on AVX2 with FMA and F16C: 8 lanes. See simd.h. LAYBY_AVXVNNI: with AVX-VNNI dot products.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace layby {
namespace {
namespace simd {

constexpr int LANES = 8;
constexpr int TILE_GROUPS = 1;
constexpr int PRODUCT_VECTORS = 2;
constexpr int FLOAT_VECTORS = 1;
constexpr int QUANTIZED_TILE_ROWS = 4;
constexpr int INTEGER_SUMS = 8;
constexpr int ATTENTION_QUERIES = 6;
constexpr int REGISTERS = 16;

using F = __m256;
using I = __m256i;
using Codes = __m256i;

inline F zero() { return _mm256_setzero_ps(); }
inline F set1(float x) { return _mm256_set1_ps(x); }
inline F load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, F x) { _mm256_storeu_ps(p, x); }
inline F add(F a, F b) { return _mm256_add_ps(a, b); }
inline F sub(F a, F b) { return _mm256_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm256_mul_ps(a, b); }
inline F div(F a, F b) { return _mm256_div_ps(a, b); }
inline F max(F a, F b) { return _mm256_max_ps(a, b); }
inline F min(F a, F b) { return _mm256_min_ps(a, b); }
inline F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
inline F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
inline bool any_nan(F a, F b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0; }

inline float sum_of_lanes(F x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_of_lanes(F x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline I to_int(F x) { return _mm256_cvtps_epi32(x); }
inline F to_float(I x) { return _mm256_cvtepi32_ps(x); }
inline I set1_int(int32_t x) { return _mm256_set1_epi32(x); }
inline I add(I a, I b) { return _mm256_add_epi32(a, b); }
inline I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
template <int BITS>
inline I shift_up(I x) { return _mm256_slli_epi32(x, BITS); }
template <int BITS>
inline I shift_down(I x) { return _mm256_srai_epi32(x, BITS); }
inline int32_t sum_of_lanes(I x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
inline F whole(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline F times_power(F x, F n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
inline void store_bytes(int8_t* p, I x) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(words, words));
}

inline F load_half(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
inline uint16_t to_half(float x) {
  return (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT));
}
inline __m256i widen(const uint8_t* p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)); }
inline F load_unsigned_bytes(const uint8_t* p) { return _mm256_cvtepi32_ps(widen(p)); }
inline F load_signed_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
}
inline F load_low_nibbles(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_and_si256(widen(p), _mm256_set1_epi32(15)));
}
inline F load_high_nibbles(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_srli_epi32(widen(p), 4)); }
inline F load_exponents(const uint8_t* p) {
  const __m256i e = widen(p);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

inline F low_bfloat(Codes pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
inline F high_bfloat(Codes pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)));
}

inline Codes load_codes(const uint8_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline Codes either(Codes a, Codes b) { return _mm256_or_si256(a, b); }
inline Codes masked(Codes a, uint8_t mask) { return _mm256_and_si256(a, _mm256_set1_epi8((char)mask)); }
template <int BITS>
inline Codes shift_right(Codes a) { return _mm256_srli_epi16(a, BITS); }
template <int BITS>
inline Codes shift_left(Codes a) { return _mm256_slli_epi16(a, BITS); }
inline Codes lookup(const uint8_t* table, Codes a) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table)), a);
}

inline I no_sum() { return _mm256_setzero_si256(); }

#if defined(LAYBY_AVXVNNI)

inline I add_product_6bit(I sum, Codes codes, const int32_t* x) {
  return _mm256_dpbusd_avx_epi32(sum, codes, _mm256_set1_epi32(*x));
}

// As on AVX-512: signed codes are moved up.
using SignedCodes = __m256i;
inline SignedCodes as_signed(Codes codes) { return _mm256_xor_si256(codes, _mm256_set1_epi8((char)0x80)); }
constexpr int SIGNED_OFFSET = 128;
inline I add_product_signed(I sum, SignedCodes codes, const int32_t* x) { return add_product_6bit(sum, codes, x); }

#define LAYBY_NIBBLE_PAIRS

inline I add_product_8bit(I sum, Codes codes, const int32_t* x) { return add_product_6bit(sum, codes, x); }
inline I first_fours(I a, I b) { return _mm256_permute2x128_si256(a, b, 0x20); }
inline I second_fours(I a, I b) { return _mm256_permute2x128_si256(a, b, 0x31); }

#else

#define LAYBY_SHORT_SUMS

// Products are summed in pairs to 16 bits, which saturate: 2 * 63 * 127 fits, and so do 8 pairs of 4-bit codes.
using ShortSum = __m256i;
inline ShortSum no_shorts() { return _mm256_setzero_si256(); }
inline ShortSum add_product_4bit(ShortSum sum, Codes codes, const int32_t* x) {
  return _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, _mm256_set1_epi32(*x)));
}
inline I add_pairs(I sum, __m256i pairs) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I add_product_6bit(I sum, Codes codes, const int32_t* x) {
  return add_pairs(sum, _mm256_maddubs_epi16(codes, _mm256_set1_epi32(*x)));
}

// Signed codes go in as their magnitudes, their signs go to the activations: 2 * 128 * 127 fits.
struct SignedCodes {
  __m256i codes, magnitudes;
};
inline SignedCodes as_signed(Codes codes) { return {codes, _mm256_abs_epi8(codes)}; }
constexpr int SIGNED_OFFSET = 0;
inline I add_product_signed(I sum, SignedCodes codes, const int32_t* x) {
  const __m256i signed_x = _mm256_sign_epi8(_mm256_set1_epi32(*x), codes.codes);
  return add_pairs(sum, _mm256_maddubs_epi16(codes.magnitudes, signed_x));
}

#endif

LAYBY_ALWAYS_INLINE void prefetch(const void* p) { _mm_prefetch((const char*)p, _MM_HINT_T0); }

}  // namespace simd
}  // namespace
}  // namespace layby
