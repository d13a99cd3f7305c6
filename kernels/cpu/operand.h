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
  return o.kind == OperandKind::QUANTIZED ? simd::QUANTIZED_TILE_ROWS : TILE_ROWS;
}
inline int64_t tile_rows(const Operand& o, int64_t start) {
  const int64_t left = o.rows - start, most = most_tile_rows(o);
  return left < most ? left : most;
}

// Quantises 32 values, rounding to nearest, to 8 words of high digits and 8 of low ones; returns the scale. A block
// with a value that is not a number gets a scale that is none either, so that the row shows it.
inline float quantize_block(const float* values, int32_t* words, int32_t* half_totals) {
  int8_t* high = (int8_t*)words;
  int8_t* low = high + QUANT_BLOCK;
  F x[BLOCK_VECTORS], largest[SUBS];
  bool broken = false;
  for (int i = 0; i < BLOCK_VECTORS; ++i) x[i] = simd::load(values + i * LANES);
  for (int s = 0; s < SUBS; ++s) {
    largest[s] = simd::max(simd::abs(x[s]), simd::abs(x[s + SUBS]));
    broken = broken || simd::any_nan(x[s], x[s + SUBS]);
  }
  const float top = simd::max16(largest);
  const float scale = broken ? NAN : top / LARGEST_CODE;
  // Below this the inverse is infinite; such a block is as good as zero.
  const F inverse = simd::set1(top > 1e-34f && !broken ? LARGEST_CODE / top : 0.0f);
  const simd::I half_digit = simd::set1_int(1 << (DIGIT_BITS - 1));
  simd::I total[2][SUBS];
  for (int half = 0; half < 2; ++half)
    for (int s = 0; s < SUBS; ++s) {
      const simd::I code = simd::to_int(simd::mul(x[half * SUBS + s], inverse));
      const simd::I digit = simd::shift_down<DIGIT_BITS>(simd::add(code, half_digit));
      simd::store_bytes(high + half * WIDTH + s * LANES, digit);
      simd::store_bytes(low + half * WIDTH + s * LANES, simd::sub(code, simd::shift_up<DIGIT_BITS>(digit)));
      total[half][s] = code;
    }
  for (int half = 0; half < 2; ++half) half_totals[half] = simd::total16(total[half]);
  return scale;
}

// Rounded to nearest, ties to even; what is not a number stays so.
inline uint32_t nearest_bfloat(float x) {
  const uint32_t bits = float_to_bits(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
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
  constexpr int WORDS = 2 * QUANT_BLOCK / 4;
  alignas(64) int32_t words[WORDS];
  int32_t half_totals[2];
  const float scale = quantize_block(values, words, half_totals);
  const int64_t blocks = o.columns / QUANT_BLOCK, at = start * blocks + block * n + i;
  int32_t* q = o.q + start * (o.columns / 2) + block * WORDS * n + i;
  for (int k = 0; k < WORDS; ++k) q[k * n] = words[k];
  int32_t* halves = o.minus_halves + 2 * (start * blocks + block * n) + i;
  halves[0] = -half_totals[0];
  halves[n] = -half_totals[1];
  o.scale[at] = scale;
  o.sum[at] = scale * (float)(half_totals[0] + half_totals[1]);
  o.minus_sum[at] = -(half_totals[0] + half_totals[1]);
}

// 32 values that start at column 32 * block, to floats or to the next product.
inline void put(const Sink& sink, int64_t row, int64_t block, const float* values) {
  if (!sink.rows.data) return put_block(sink.operand, row, block, values);
  float* out = sink.rows.row(row) + block * QUANT_BLOCK;
  for (int i = 0; i < BLOCK_VECTORS; ++i) simd::store(out + i * LANES, simd::load(values + i * LANES));
}

}  // namespace
}  // namespace layby
