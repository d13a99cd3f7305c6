// Linear layers: packed weights times prepared rows, and what follows the product. Compiled for each variant.
//
// One kernel computes 16 outputs of M rows, M = 1 to 8. Whatever M is, an output of a row is the same sequence of
// operations on that row's numbers: M only says how many rows share a load of weights. Inside a group of inputs the
// sum is one of integers and exact; across groups it is one chain of fused multiply-adds in the order of the inputs.
#include "activations.h"
#include "form_codes.h"
#include "kernels.h"
#include "operand.h"
#include "simd/simd.h"
#include "variant.h"

namespace layby {
namespace {

using simd::I;

constexpr int PREFETCH_BYTES = 2560;  // how far ahead of the weights in use
constexpr int PREFETCH_ROWS = 4;      // with more rows a product takes longer than its weights
constexpr int DIGIT_WORDS = QUANT_BLOCK / 4;  // that hold one digit of a block's values
constexpr int ROW_BLOCK = 64;         // rows that pass before the next group's weights replace these in the cache

// A tile of an operand.
struct Tile {
  const float* x;
  const uint32_t* pairs;
  const int32_t* q;
  const float* scale;
  const float* sum;
  const float* half_sum;
  const int32_t* minus_sum;
};

Tile tile_at(const Operand& o, int64_t start) {
  Tile tile = {};
  if (o.kind == OperandKind::FLOAT) tile.x = o.x + start * o.columns;
  if (o.kind == OperandKind::BFLOAT) tile.pairs = o.pairs + start * ((o.columns + 1) / 2);
  if (o.kind != OperandKind::QUANTIZED) return tile;
  const int64_t block = start * (o.columns / QUANT_BLOCK);
  tile.q = o.q + start * (o.columns / 2);
  tile.scale = o.scale + block;
  tile.sum = o.sum + block;
  tile.half_sum = o.half_sum + 2 * block;
  tile.minus_sum = o.minus_sum + block;
  return tile;
}

// Integer sums over VECTORS code vectors of a part, from vector FIRST on: the products with the high digits of M rows,
// moved up, and those with the low ones. Codes are read once.
template <class Codec, int M, int FIRST, int VECTORS>
struct Sums {
  // Where digit `digit` of a row's values that meet code vector v stands, of rows that are interleaved.
  static const int32_t* at(const int32_t* q, int digit, int v) { return q + (digit * DIGIT_WORDS + FIRST + v) * M; }

  static void read(const uint8_t* part, int sub, Codes* codes) {
    LAYBY_UNROLL
    for (int v = 0; v < VECTORS; v += 2) Codec::codes(part, (FIRST + v) / 2, sub, codes + v);
  }

#if defined(LAYBY_I8MM)
  // M is even.
  static void of_pairs(const Codes* codes, const int32_t* q, I* sums) {
    simd::PairSum pairs[M / 2];
    for (int p = 0; p < M / 2; ++p) pairs[p] = simd::no_pairs();
    for (int digit = 0; digit < 2; ++digit) {
      for (int p = 0; p < M / 2 && digit; ++p) pairs[p] = simd::shift_up<DIGIT_BITS>(pairs[p]);
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; v += 2) {
        const simd::PairCodes both = simd::pair_codes(codes + v);
        const int32_t *first = at(q, digit, v), *second = at(q, digit, v + 1);
        LAYBY_UNROLL
        for (int p = 0; p < M / 2; ++p) pairs[p] = simd::add_product_pair(pairs[p], both, first + 2 * p, second + 2 * p);
      }
    }
    for (int p = 0; p < M / 2; ++p) {
      sums[2 * p] = simd::total_first(pairs[p]);
      sums[2 * p + 1] = simd::total_second(pairs[p]);
    }
  }
#endif

#if defined(LAYBY_SHORT_SUMS)
  static void of_4bit(const Codes* codes, const int32_t* q, I* sums) {
    for (int digit = 0; digit < 2; ++digit) {
      simd::ShortSum shorts[M];
      for (int m = 0; m < M; ++m) shorts[m] = simd::no_shorts();
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; ++v) {
        LAYBY_UNROLL
        for (int m = 0; m < M; ++m) shorts[m] = simd::add_product_4bit(shorts[m], codes[v], at(q, digit, v) + m);
      }
      for (int m = 0; m < M; ++m)
        sums[m] = simd::add_pairs(digit ? simd::shift_up<DIGIT_BITS>(sums[m]) : simd::no_sum(), shorts[m]);
    }
  }
#endif

  static void of_6bit(const Codes* codes, const int32_t* q, I* sums) {
    for (int m = 0; m < M; ++m) sums[m] = simd::no_sum();
    for (int digit = 0; digit < 2; ++digit) {
      for (int m = 0; m < M && digit; ++m) sums[m] = simd::shift_up<DIGIT_BITS>(sums[m]);
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; ++v) {
        LAYBY_UNROLL
        for (int m = 0; m < M; ++m) sums[m] = simd::add_product_6bit(sums[m], codes[v], at(q, digit, v) + m);
      }
    }
  }

  static void of_signed(const Codes* codes, const int32_t* q, const int32_t* minus_sum, I* sums) {
    for (int m = 0; m < M; ++m) sums[m] = simd::start_signed(minus_sum + m);
    for (int digit = 0; digit < 2; ++digit) {
      for (int m = 0; m < M && digit; ++m) sums[m] = simd::shift_up<DIGIT_BITS>(sums[m]);
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; ++v) {
        const simd::SignedCodes some = simd::as_signed(codes[v]);
        LAYBY_UNROLL
        for (int m = 0; m < M; ++m) sums[m] = simd::add_product_signed(sums[m], some, at(q, digit, v) + m);
      }
    }
  }

  static void of(const uint8_t* part, int sub, const int32_t* q, const int32_t* minus_sum, I* sums) {
    Codes codes[VECTORS];
    read(part, sub, codes);
#if defined(LAYBY_I8MM)
    if constexpr (M % 2 == 0) return of_pairs(codes, q, sums);
#endif
#if defined(LAYBY_SHORT_SUMS)
    if constexpr (Codec::KIND == Product::FOUR_BIT) return of_4bit(codes, q, sums);
#endif
    if constexpr (Codec::KIND == Product::SIGNED) return of_signed(codes, q, minus_sum, sums);
    return of_6bit(codes, q, sums);
  }
};

// Adds the products of one group of inputs: block `k` of 32, or half HALF of it where groups have 16.
template <class Codec, int M, int HALF>
inline void add_group(const uint8_t* block, const uint8_t* part, int64_t k, const Tile& tile, F (*acc)[SUBS]) {
  constexpr int VECTORS = Codec::GROUP / 4;
  const float* scales = tile.scale + k * M;
  const float* sums = Codec::GROUP == QUANT_BLOCK ? tile.sum + k * M : tile.half_sum + (2 * k + HALF) * M;
  LAYBY_UNROLL
  for (int sub = 0; sub < SUBS; ++sub) {
    I totals[M];
    Sums<Codec, M, HALF * VECTORS, VECTORS>::of(part, sub, tile.q + k * 2 * DIGIT_WORDS * M, tile.minus_sum + k * M,
                                                totals);
    const F scale = Codec::scale(block, part, HALF, sub);
    const F minimum = Codec::minimum(block, part, HALF, sub);
    LAYBY_UNROLL
    for (int m = 0; m < M; ++m) {
      const F step = simd::mul(scale, simd::set1(scales[m]));
      acc[m][sub] = simd::fma(simd::to_float(totals[m]), step, acc[m][sub]);
      if (Codec::MINIMUM) acc[m][sub] = simd::fma(minimum, simd::set1(sums[m]), acc[m][sub]);
    }
  }
}

template <class Codec, Form FORM, int M>
void dot_quantized(const uint8_t* group, int64_t columns, const Tile& tile, float* out) {
  constexpr FormLayout layout = LAYOUTS[static_cast<int>(FORM)];
  constexpr int PARTS = layout.values / QUANT_BLOCK;
  F acc[M][SUBS];
  for (int m = 0; m < M; ++m)
    for (int sub = 0; sub < SUBS; ++sub) acc[m][sub] = simd::zero();
  const uint8_t* block = group;
  for (int64_t k = 0; k < columns / QUANT_BLOCK; k += PARTS, block += layout.block_bytes()) {
    for (int p = 0; p < PARTS; ++p) {
      const uint8_t* part = block + layout.head + p * layout.part;
      if constexpr (M <= PREFETCH_ROWS)
        for (int at = 0; at < layout.part; at += 64) simd::prefetch(part + PREFETCH_BYTES + at);
      add_group<Codec, M, 0>(block, part, k + p, tile, acc);
      if constexpr (Codec::GROUP < QUANT_BLOCK) add_group<Codec, M, 1>(block, part, k + p, tile, acc);
    }
  }
  for (int m = 0; m < M; ++m)
    for (int sub = 0; sub < SUBS; ++sub) simd::store(out + m * WIDTH + sub * LANES, acc[m][sub]);
}

template <Form FORM>
inline F load_weights(const uint8_t* input, int sub) {
  if constexpr (FORM == Form::F32) return simd::load((const float*)input + sub * LANES);
  return simd::load_half((const uint16_t*)input + sub * LANES);
}

template <Form FORM, int M>
void dot_float(const uint8_t* group, int64_t columns, const Tile& tile, float* out) {
  constexpr int BYTES = LAYOUTS[static_cast<int>(FORM)].part;
  for (int sub = 0; sub < SUBS; ++sub) {
    F acc[M];
    for (int m = 0; m < M; ++m) acc[m] = simd::zero();
    for (int64_t k = 0; k < columns; ++k) {
      const uint8_t* input = group + k * BYTES;
      if (M <= PREFETCH_ROWS && sub == 0) simd::prefetch(input + PREFETCH_BYTES);
      const F weights = load_weights<FORM>(input, sub);
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) acc[m] = simd::fma(simd::set1(tile.x[k * M + m]), weights, acc[m]);
    }
    for (int m = 0; m < M; ++m) simd::store(out + m * WIDTH + sub * LANES, acc[m]);
  }
}

// bfloat16 weights lie in pairs of inputs. Where an instruction multiplies such pairs, rows are pairs too; elsewhere
// they are floats, and the weights become floats on the way.
template <int M>
void dot_bfloat(const uint8_t* group, int64_t columns, const Tile& tile, float* out) {
  for (int sub = 0; sub < SUBS; ++sub) {
    F acc[M];
    for (int m = 0; m < M; ++m) acc[m] = simd::zero();
    for (int64_t pair = 0; pair < (columns + 1) / 2; ++pair) {
      const uint8_t* input = group + pair * CODE_VECTOR;
      if (M <= PREFETCH_ROWS && sub == 0) simd::prefetch(input + PREFETCH_BYTES);
      const simd::Codes both = simd::load_codes(input + sub * LANES * 4);
#if defined(LAYBY_BF16)
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) acc[m] = simd::add_product_bfloat(acc[m], both, tile.pairs + pair * M + m);
#else
      const F first = simd::low_bfloat(both), second = simd::high_bfloat(both);
      const float* x = tile.x + 2 * pair * M;
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) acc[m] = simd::fma(simd::set1(x[m]), first, acc[m]);
      if (2 * pair + 1 == columns) break;
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) acc[m] = simd::fma(simd::set1(x[M + m]), second, acc[m]);
#endif
    }
    for (int m = 0; m < M; ++m) simd::store(out + m * WIDTH + sub * LANES, acc[m]);
  }
}

using DotKernel = void (*)(const uint8_t* group, int64_t columns, const Tile& tile, float* out);

#define LAYBY_FLOAT_FORM(FORM)                                                                                 \
  {dot_float<FORM, 1>, dot_float<FORM, 2>, dot_float<FORM, 3>, dot_float<FORM, 4>,                             \
   dot_float<FORM, 5>, dot_float<FORM, 6>, dot_float<FORM, 7>, dot_float<FORM, 8>}
#define LAYBY_FORM(CODEC, FORM)                                                                                \
  {dot_quantized<CODEC, FORM, 1>, dot_quantized<CODEC, FORM, 2>, dot_quantized<CODEC, FORM, 3>,                \
   dot_quantized<CODEC, FORM, 4>, dot_quantized<CODEC, FORM, 5>, dot_quantized<CODEC, FORM, 6>,                \
   dot_quantized<CODEC, FORM, 7>, dot_quantized<CODEC, FORM, 8>}

#define LAYBY_BFLOAT_FORM                                                                                      \
  {dot_bfloat<1>, dot_bfloat<2>, dot_bfloat<3>, dot_bfloat<4>,                                                 \
   dot_bfloat<5>, dot_bfloat<6>, dot_bfloat<7>, dot_bfloat<8>}

using FormQ40 = OffsetForm<8, false>;
using FormQ50 = OffsetForm<16, true>;
using FormQ41 = MinimumForm<false>;
using FormQ51 = MinimumForm<true>;
using FormQ4K = SuperMinimumForm<false>;
using FormQ5K = SuperMinimumForm<true>;

constexpr DotKernel DOT[static_cast<int>(Form::COUNT)][TILE_ROWS] = {
    LAYBY_FLOAT_FORM(Form::F32),          LAYBY_FLOAT_FORM(Form::F16),
    LAYBY_BFLOAT_FORM,                    LAYBY_FORM(FormQ40, Form::Q4_0),
    LAYBY_FORM(FormQ41, Form::Q4_1),      LAYBY_FORM(FormQ50, Form::Q5_0),
    LAYBY_FORM(FormQ51, Form::Q5_1),      LAYBY_FORM(FormQ80, Form::Q8_0),
    LAYBY_FORM(FormQ2K, Form::Q2_K),      LAYBY_FORM(FormQ3K, Form::Q3_K),
    LAYBY_FORM(FormQ4K, Form::Q4_K),      LAYBY_FORM(FormQ5K, Form::Q5_K),
    LAYBY_FORM(FormQ6K, Form::Q6_K),      LAYBY_FORM(FormIQ4NL, Form::IQ4_NL),
    LAYBY_FORM(FormIQ4XS, Form::IQ4_XS),  LAYBY_FORM(FormMXFP4, Form::MXFP4),
};

// out[m][16]: outputs of `group` for the n rows of a tile.
inline void dot(const PackedWeight& weight, int64_t group, const Tile& tile, int64_t n, float* out) {
  DOT[static_cast<int>(weight.form)][n - 1](weight.data + group * weight.group_bytes, weight.inputs, tile, out);
}

inline F plus_bias(const LinearPart& part, int64_t column, F sum) {
  return part.bias ? simd::add(sum, simd::load(part.bias + column)) : sum;
}

void finish_group(const LinearPart& part, int64_t group, Range rows, const float* sums) {
  const int64_t first = group * GROUP_OUTPUTS;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int sub = 0; sub < SUBS; ++sub) {
      const int64_t column = first + sub * LANES;
      F x = plus_bias(part, column, simd::load(sums + (r - rows.begin) * WIDTH + sub * LANES));
      if (part.residual.data) x = simd::add(x, simd::load(part.residual.row(r) + column));
      simd::store(part.out.row(r) + column, x);
    }
}

// Calls tile(start, n) for the tiles of rows in blocks that stay in the cache, for each group in turn.
template <class EachTile>
inline void for_tiles(const Operand& x, Range groups, Range rows, const EachTile& each) {
  for (int64_t block = rows.begin; block < rows.end; block += ROW_BLOCK) {
    const int64_t end = block + ROW_BLOCK < rows.end ? block + ROW_BLOCK : rows.end;
    for (int64_t group = groups.begin; group < groups.end; ++group)
      for (int64_t start = block; start < end; start += TILE_ROWS) each(group, start, x.tile_rows(start));
  }
}

}  // namespace

namespace LAYBY_VARIANT {

OperandKind operand_of(Form form) {
#if defined(LAYBY_BF16)
  if (form == Form::BF16) return OperandKind::BFLOAT;
#endif
  return is_float(form) ? OperandKind::FLOAT : OperandKind::QUANTIZED;
}

void linear(const LinearPart& part, const Operand& x, Range groups, Range rows) {
  for_tiles(x, groups, rows, [&](int64_t group, int64_t start, int64_t n) {
    alignas(64) float sums[TILE_ROWS * WIDTH];
    dot(part.weight, group, tile_at(x, start), n, sums);
    finish_group(part, group, {start, start + n}, sums);
  });
}

void gated_linear(const GatedPart& part, const Operand& x, Range blocks, Range rows) {
  constexpr int GROUPS = QUANT_BLOCK / GROUP_OUTPUTS;
  for_tiles(x, blocks, rows, [&](int64_t block, int64_t start, int64_t n) {
    alignas(64) float gate[GROUPS][TILE_ROWS * WIDTH], up[GROUPS][TILE_ROWS * WIDTH], out[QUANT_BLOCK];
    const Tile tile = tile_at(x, start);
    for (int g = 0; g < GROUPS; ++g) {
      dot(part.gate.weight, block * GROUPS + g, tile, n, gate[g]);
      dot(part.up.weight, block * GROUPS + g, tile, n, up[g]);
    }
    for (int64_t m = 0; m < n; ++m) {
      for (int g = 0; g < GROUPS; ++g)
        for (int sub = 0; sub < SUBS; ++sub) {
          const int64_t at = m * WIDTH + sub * LANES, column = (block * GROUPS + g) * WIDTH + sub * LANES;
          const F opened = activate(part.activation, plus_bias(part.gate, column, simd::load(gate[g] + at)));
          const F value = plus_bias(part.up, column, simd::load(up[g] + at));
          simd::store(out + g * WIDTH + sub * LANES, simd::mul(opened, value));
        }
      put(part.out, start + m, block, out);
    }
  });
}

}  // namespace LAYBY_VARIANT
}  // namespace layby
