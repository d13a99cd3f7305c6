// Puts rows into the shape that products read (see Operand): quantised by blocks of 32, or plain floats.
//
// Compiled for each variant. A block's scale and codes depend on its own 32 values and nothing else.
#pragma once

#include <math.h>

#include "half.h"
#include "kernels.h"
#include "simd/simd.h"

namespace layby {
namespace {

using simd::F;
using simd::LANES;
using simd::SUBS;
using simd::WIDTH;

constexpr int BLOCK_VECTORS = QUANT_BLOCK / LANES;

// Rows of a tile: all but the last have as many as there can be.
inline int64_t most_tile_rows(const Operand& o) {
  return is_quantized(o.kind) ? simd::QUANTIZED_TILE_ROWS : TILE_ROWS;
}
inline int64_t tile_rows(const Operand& o, int64_t start) {
  const int64_t left = o.rows - start, most = most_tile_rows(o);
  return left < most ? left : most;
}

// Rounds 32 values to nearest codes of at most `most`; returns the scale. A block with a value that is not a number
// gets a scale that is none either, so that the row shows it.
inline float block_codes(const float* values, int most, simd::I* codes) {
  F x[BLOCK_VECTORS], largest[SUBS];
  bool broken = false;
  for (int i = 0; i < BLOCK_VECTORS; ++i) x[i] = simd::load(values + i * LANES);
  for (int s = 0; s < SUBS; ++s) {
    largest[s] = simd::max(simd::abs(x[s]), simd::abs(x[s + SUBS]));
    broken = broken || simd::any_nan(x[s], x[s + SUBS]);
  }
  const float top = simd::max16(largest);
  // Below this the inverse is infinite; such a block is as good as zero.
  const F inverse = simd::set1(top > 1e-34f && !broken ? most / top : 0.0f);
  for (int i = 0; i < BLOCK_VECTORS; ++i) codes[i] = simd::to_int(simd::mul(x[i], inverse));
  return broken ? NAN : top / most;
}

// Quantises 32 values to 8 words of high digits and 8 of low ones; returns the scale.
inline float quantize_block(const float* values, int32_t* words, int32_t* half_totals) {
  int8_t* high = (int8_t*)words;
  int8_t* low = high + QUANT_BLOCK;
  simd::I codes[BLOCK_VECTORS];
  const float scale = block_codes(values, LARGEST_CODE, codes);
  const simd::I half_digit = simd::set1_int(1 << (DIGIT_BITS - 1));
  for (int half = 0; half < 2; ++half)
    for (int s = 0; s < SUBS; ++s) {
      const simd::I code = codes[half * SUBS + s];
      const simd::I digit = simd::shift_down<DIGIT_BITS>(simd::add(code, half_digit));
      simd::store_bytes(high + half * WIDTH + s * LANES, digit);
      simd::store_bytes(low + half * WIDTH + s * LANES, simd::sub(code, simd::shift_up<DIGIT_BITS>(digit)));
    }
  for (int half = 0; half < 2; ++half) half_totals[half] = simd::total16(codes + half * SUBS);
  return scale;
}

#if defined(LAYBY_NIBBLE_PAIRS)

// The same to words of paired values. m is the high code modulo 16 and the low code modulo 15; of the numbers that are,
// 240 apart, it is the one nearest to zero, which leaves a and c within a byte.
inline float quantize_pairs(const float* values, int32_t* words, int32_t* half_totals) {
  constexpr int PAIRS = QUANT_BLOCK / 2;
  int8_t* bytes = (int8_t*)words;
  simd::I codes[BLOCK_VECTORS];
  const float scale = block_codes(values, LARGEST_PAIRED_CODE, codes);
  for (int s = 0; s < SUBS; ++s) {
    const simd::I low = simd::first_fours(codes[2 * s], codes[2 * s + 1]);
    const simd::I high = simd::second_fours(codes[2 * s], codes[2 * s + 1]);
    const simd::I sixteenths = simd::shift_down<4>(simd::add(high, simd::set1_int(8)));
    const simd::I rest = simd::sub(high, simd::shift_up<4>(sixteenths)), left = simd::sub(low, rest);
    const simd::I fifteenths = simd::to_int(simd::mul(simd::to_float(left), simd::set1(1.0f / 15)));
    const simd::I over = simd::sub(left, simd::sub(simd::shift_up<4>(fifteenths), fifteenths));
    simd::store_bytes(bytes + s * LANES, simd::sub(sixteenths, over));
    simd::store_bytes(bytes + PAIRS + s * LANES, simd::sub(fifteenths, over));
    simd::store_bytes(bytes + 2 * PAIRS + s * LANES, simd::add(rest, simd::shift_up<4>(over)));
  }
  for (int half = 0; half < 2; ++half) half_totals[half] = simd::total16(codes + half * SUBS);
  return scale;
}

#endif

// Rounded to nearest, ties to even; what is not a number stays so.
inline uint32_t nearest_bfloat(float x) {
  const uint32_t bits = float_to_bits(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Block `block` of the i-th of n rows in the tile at `start`.
template <OperandKind KIND>
inline void put_codes(const Operand& o, int64_t i, int64_t start, int64_t n, int64_t block, const float* values) {
  constexpr int WORDS = words_of_block(KIND);
  alignas(64) int32_t words[WORDS];
  int32_t half_totals[2];
  float scale;
#if defined(LAYBY_NIBBLE_PAIRS)
  if constexpr (KIND == OperandKind::PAIRED)
    scale = quantize_pairs(values, words, half_totals);
  else
#endif
    scale = quantize_block(values, words, half_totals);
  const int64_t blocks = o.columns / QUANT_BLOCK, at = start * blocks + block * n + i;
  int32_t* q = o.q + (start * blocks + block * n) * WORDS + i;
  for (int k = 0; k < WORDS; ++k) q[k * n] = words[k];
  int32_t* halves = o.minus_halves + 2 * (start * blocks + block * n) + i;
  halves[0] = -half_totals[0];
  halves[n] = -half_totals[1];
  o.scale[at] = scale;
  o.sum[at] = scale * (float)(half_totals[0] + half_totals[1]);
  o.minus_sum[at] = -(half_totals[0] + half_totals[1]);
}

// Block `block` of row `row` becomes these 32 values.
inline void put_block(const Operand& o, int64_t row, int64_t block, const float* values) {
  const int64_t i = row % most_tile_rows(o), start = row - i, n = tile_rows(o, start);
  if (o.kind == OperandKind::FLOAT) {
    float* at = o.x + start * o.columns + block * QUANT_BLOCK * n + i;
    for (int64_t k = 0; k < QUANT_BLOCK && block * QUANT_BLOCK + k < o.columns; ++k) at[k * n] = values[k];
    return;
  }
  if (o.kind == OperandKind::BFLOAT) {
    const int64_t words = (o.columns + 1) / 2, first = block * QUANT_BLOCK / 2;
    uint32_t* at = o.pairs + start * words + first * n + i;
    for (int64_t k = 0; k < QUANT_BLOCK / 2 && first + k < words; ++k)
      at[k * n] = nearest_bfloat(values[2 * k]) | nearest_bfloat(values[2 * k + 1]) << 16;
    return;
  }
#if defined(LAYBY_NIBBLE_PAIRS)
  if (o.kind == OperandKind::PAIRED) return put_codes<OperandKind::PAIRED>(o, i, start, n, block, values);
#endif
  put_codes<OperandKind::QUANTIZED>(o, i, start, n, block, values);
}

// 32 values that start at column 32 * block, to floats or to the next product.
inline void put(const Sink& sink, int64_t row, int64_t block, const float* values) {
  if (!sink.rows.data) return put_block(sink.operand, row, block, values);
  float* out = sink.rows.row(row) + block * QUANT_BLOCK;
  for (int i = 0; i < BLOCK_VECTORS; ++i) simd::store(out + i * LANES, simd::load(values + i * LANES));
}

}  // namespace
}  // namespace layby
