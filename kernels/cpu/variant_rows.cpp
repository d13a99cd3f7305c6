// What happens to one row at a time: norms, rotation, gates, and preparing rows for products. Compiled for each variant.
#include <math.h>

#include "activations.h"
#include "kernels.h"
#include "kv_tiles.h"
#include "operand.h"
#include "simd/simd.h"
#include "variant.h"

namespace layby {
namespace {

// Copies [from, from + n) of a row, n <= 32, and fills up with zeros.
inline void take(const float* row, int64_t from, int64_t columns, float* out) {
  const int64_t left = columns - from;
  for (int64_t i = 0; i < QUANT_BLOCK; ++i) out[i] = i < left ? row[from + i] : 0.0f;
}

// 1 / root of the mean square (plus epsilon) of n values, summed in 16 lanes.
inline float inverse_rms(const float* x, int64_t n, float epsilon) {
  F squares[SUBS];
  for (int s = 0; s < SUBS; ++s) squares[s] = simd::zero();
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) {
      const F v = simd::load(x + i + s * LANES);
      squares[s] = simd::fma(v, v, squares[s]);
    }
  if (i < n) {
    alignas(64) float rest[QUANT_BLOCK];
    take(x, i, n, rest);
    for (int s = 0; s < SUBS; ++s) {
      const F v = simd::load(rest + s * LANES);
      squares[s] = simd::fma(v, v, squares[s]);
    }
  }
  return 1.0f / sqrtf(simd::sum16(squares) / (float)n + epsilon);
}

// 32 values of a row, normalised where the source says so.
inline void read_block(const Source& source, const float* row, int64_t from, float inverse, float* out) {
  if (from + QUANT_BLOCK > source.columns) {
    take(row, from, source.columns, out);
    if (source.norm.weight)
      for (int64_t i = 0; from + i < source.columns; ++i) out[i] = out[i] * inverse * source.norm.weight[from + i];
    return;
  }
  for (int i = 0; i < QUANT_BLOCK; i += LANES) {
    F v = simd::load(row + from + i);
    if (source.norm.weight)
      v = simd::mul(simd::mul(v, simd::set1(inverse)), simd::load(source.norm.weight + from + i));
    simd::store(out + i, v);
  }
}

// x[i] *= inverse * weight[i], in this order of products.
inline void scale_by(float* x, float inverse, const float* weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * inverse * weight[i];
}

// Value i of a head turns with value i + rotary_dim / 2.
void rotate(const HeadStream& stream, int64_t row, float* x) {
  const int64_t half = stream.rotary_dim / 2;
  const float* cosines = stream.cosines + row * half;
  const float* sines = stream.sines + row * half;
  float* first = x;
  float* second = x + half;
  int64_t i = 0;
  for (; i + LANES <= half; i += LANES) {
    const F a = simd::load(first + i), b = simd::load(second + i);
    const F cosine = simd::load(cosines + i), sine = simd::load(sines + i);
    simd::store(first + i, simd::sub(simd::mul(a, cosine), simd::mul(b, sine)));
    simd::store(second + i, simd::add(simd::mul(a, sine), simd::mul(b, cosine)));
  }
  for (; i < half; ++i) {
    const float a = first[i] * cosines[i] - second[i] * sines[i];
    const float b = first[i] * sines[i] + second[i] * cosines[i];
    first[i] = a;
    second[i] = b;
  }
}

template <class Element>
inline Element to_element(float x);
template <>
inline float to_element<float>(float x) { return x; }
template <>
inline uint16_t to_element<uint16_t>(float x) { return simd::to_half(x); }

template <class Element>
void put_numbers_in_pool(const HeadStream& stream, uint8_t* page, int64_t slot, int64_t head, const float* x) {
  const KvLayer& kv = stream.kv;
  if (stream.sink == HeadSink::KEY) {
    Element* tile = (Element*)(page + kv.key_offset + head * key_tile_bytes(kv));
    for (int64_t d = 0; d < kv.head_dim; ++d) tile[d * PAGE_TOKENS + slot] = to_element<Element>(x[d]);
    return;
  }
  Element* value = (Element*)(page + kv.value_offset + head * value_tile_bytes(kv)) + slot * kv.value_stride;
  for (int64_t d = 0; d < kv.value_stride; ++d) value[d] = to_element<Element>(d < kv.head_dim ? x[d] : 0.0f);
}

// 32 numbers as bytes and a half-precision scale: round(x / scale), with scale = largest magnitude / 127, rounded. A
// group with what no scale can hold gets one that is not a number, so that the row shows it.
inline uint16_t quantize_group(const float* values, int8_t* codes) {
  F largest[SUBS];
  bool broken = false;
  for (int s = 0; s < SUBS; ++s) {
    const F a = simd::load(values + s * LANES), b = simd::load(values + WIDTH + s * LANES);
    largest[s] = simd::max(simd::abs(a), simd::abs(b));
    broken = broken || simd::any_nan(a, b);
  }
  const uint16_t half = simd::to_half(simd::max16(largest) / 127.0f);
  const float scale = half_to_float(half);
  broken = broken || scale > 65504.0f;
  const F inverse = simd::set1(scale > 0.0f && !broken ? 1.0f / scale : 0.0f), most = simd::set1(127.0f);
  for (int i = 0; i < KV_GROUP; i += LANES) {
    const F x = broken ? simd::zero() : simd::mul(simd::load(values + i), inverse);
    const F held = simd::max(simd::min(x, most), simd::set1(-127.0f));
    simd::store_bytes(codes + i, simd::to_int(held));
  }
  return broken ? 0x7e00 : half;
}

void put_bytes_in_pool(const HeadStream& stream, uint8_t* page, int64_t slot, int64_t head, const float* x) {
  const KvLayer& kv = stream.kv;
  const bool is_key = stream.sink == HeadSink::KEY;
  const int64_t dims = is_key ? key_quads(kv.head_dim) * QUAD : kv.value_stride;
  uint8_t* tile = is_key ? page + kv.key_offset + head * key_tile_bytes(kv)
                         : page + kv.value_offset + head * value_tile_bytes(kv);
  uint16_t* scales = (uint16_t*)(tile + (is_key ? key_scales_at(kv) : value_scales_at(kv))) + slot;
  for (int64_t at = 0; at < dims; at += KV_GROUP) {
    alignas(64) float values[KV_GROUP];
    alignas(64) int8_t codes[KV_GROUP];
    take(x, at, kv.head_dim, values);
    scales[at / KV_GROUP * PAGE_TOKENS] = quantize_group(values, codes);
    for (int64_t i = 0; i < KV_GROUP && at + i < dims; ++i) {
      const int64_t d = at + i;
      tile[is_key ? (d / QUAD * PAGE_TOKENS + slot) * QUAD + d % QUAD : slot * kv.value_stride + d] = (uint8_t)codes[i];
    }
  }
}

void put_in_pool(const HeadStream& stream, const StepRows& step, int64_t row, int64_t head, const float* x) {
  const int64_t position = step.positions[row], slot = position % PAGE_TOKENS;
  uint8_t* page = stream.kv.pool + step.pages(row)[position / PAGE_TOKENS] * stream.kv.page_bytes;
  switch (stream.kv.type) {
    case KvType::F16: return put_numbers_in_pool<uint16_t>(stream, page, slot, head, x);
    case KvType::F32: return put_numbers_in_pool<float>(stream, page, slot, head, x);
    case KvType::Q8_0: return put_bytes_in_pool(stream, page, slot, head, x);
  }
}

}  // namespace

namespace LAYBY_VARIANT {

void prepare(const Source& source, const Operand& out, Range rows) {
  const int64_t blocks = (source.columns + QUANT_BLOCK - 1) / QUANT_BLOCK;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* row = source.row(r);
    const float inverse = source.norm.weight ? inverse_rms(row, source.columns, source.norm.epsilon) : 1.0f;
    for (int64_t block = 0; block < blocks; ++block) {
      alignas(64) float values[QUANT_BLOCK];
      read_block(source, row, block * QUANT_BLOCK, inverse, values);
      put_block(out, r, block, values);
    }
  }
}

void normalize(const Source& source, const Rows& out, Range rows) {
  const Norm& norm = source.norm;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* row = source.row(r);
    float* to = out.row(r);
    for (int64_t i = 0; i < source.columns; i += norm.group) {
      const float inverse = norm.weight ? inverse_rms(row + i, norm.group, norm.epsilon) : 1.0f;
      for (int64_t j = 0; j < norm.group; ++j) to[i + j] = row[i + j];
      if (norm.weight) scale_by(to + i, inverse, norm.weight, norm.group);
    }
    for (int64_t i = source.columns; i < out.stride; ++i) to[i] = 0.0f;
  }
}

void gated(const Rows& gate, const Rows& up, Activation activation, const Sink& out, Range rows, int64_t columns) {
  const int64_t blocks = (columns + QUANT_BLOCK - 1) / QUANT_BLOCK;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t block = 0; block < blocks; ++block) {
      alignas(64) float a[QUANT_BLOCK], b[QUANT_BLOCK];
      take(gate.row(r), block * QUANT_BLOCK, columns, a);
      take(up.row(r), block * QUANT_BLOCK, columns, b);
      for (int i = 0; i < QUANT_BLOCK; i += LANES)
        simd::store(a + i, simd::mul(activate(activation, simd::load(a + i)), simd::load(b + i)));
      put(out, r, block, a);
    }
}

void heads(const HeadStream& stream, const StepRows& step, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t head = 0; head < stream.heads; ++head) {
      alignas(64) float x[MAX_HEAD_DIM];
      const float* from = stream.x.row(r) + head * stream.head_dim;
      for (int64_t d = 0; d < stream.head_dim; ++d) x[d] = from[d];
      if (stream.norm.weight)
        scale_by(x, inverse_rms(x, stream.head_dim, stream.norm.epsilon), stream.norm.weight, stream.head_dim);
      if (stream.cosines) rotate(stream, r, x);
      if (stream.sink == HeadSink::ROWS) {
        float* to = stream.out.row(r) + head * stream.head_dim;
        for (int64_t d = 0; d < stream.head_dim; ++d) to[d] = x[d];
      } else {
        put_in_pool(stream, step, r, head, x);
      }
    }
}

}  // namespace LAYBY_VARIANT
}  // namespace layby
