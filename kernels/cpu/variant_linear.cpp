// Linear layers: packed weights times prepared rows, and what follows the product. Compiled for each variant.
//
// One kernel computes 16 or 32 outputs of M rows, M = 1 to 8. Whatever M is, an output of a row is the same sequence of
// operations on that row's numbers: M only says how many rows share a load of weights. Inside a group of inputs the
// sum is one of integers and exact; across groups it is one chain of fused multiply-adds in the order of the inputs.
#include "activations.h"
#include "kernels.h"
#include "operand.h"
#include "products.h"
#include "simd/simd.h"
#include "variant.h"

namespace layby {
namespace {

using simd::TILE_GROUPS;

constexpr int PREFETCH_BYTES = 2560;  // how far ahead of the weights in use
constexpr int ROW_BLOCK = 64;         // rows that pass before the next groups' weights replace these in the cache

// A tile of an operand.
struct Tile {
  const float* x;
  const uint32_t* pairs;
  const int32_t* q;
  const float* scale;
  const float* sum;
  const int32_t* minus_sum;
  const int32_t* minus_halves;
  bool is_first;  // of those that meet these weights, which are still on their way
};

Tile tile_at(const Operand& o, int64_t start, bool is_first) {
  Tile tile = {};
  tile.is_first = is_first;
  if (o.kind == OperandKind::FLOAT) tile.x = o.x + start * o.columns;
  if (o.kind == OperandKind::BFLOAT) tile.pairs = o.pairs + start * ((o.columns + 1) / 2);
  if (!is_quantized(o.kind)) return tile;
  const int64_t block = start * (o.columns / QUANT_BLOCK);
  tile.q = o.q + block * words_of_block(o.kind);
  tile.scale = o.scale + block;
  tile.sum = o.sum + block;
  tile.minus_sum = o.minus_sum + block;
  tile.minus_halves = o.minus_halves + 2 * block;
  return tile;
}

// The groups of outputs that a kernel computes together, as its sums stand in registers: vector by vector.
template <int G>
struct Groups {
  static constexpr int VECTORS = G * SUBS;
  static constexpr int STRIP = VECTORS < simd::PRODUCT_VECTORS ? VECTORS : simd::PRODUCT_VECTORS;  // at once
  static constexpr int FLOAT_STRIP = VECTORS < simd::FLOAT_VECTORS ? VECTORS : simd::FLOAT_VECTORS;

  template <int M>
  static void store(const F (*acc)[VECTORS], const Rows& out) {
    for (int m = 0; m < M; ++m)
      for (int v = 0; v < VECTORS; ++v) simd::store(out.row(m) + v * LANES, acc[m][v]);
  }
};

// Adds the products of one group of inputs: block `k` of 32, or half HALF of it where groups have 16.
template <class Codec, int M, int G, int HALF>
inline void add_group(const Parts& blocks, const Parts& parts, int64_t k, const Tile& tile, F (*acc)[G * SUBS]) {
  constexpr int VECTORS = Codec::GROUP / 4, STRIP = Groups<G>::STRIP;
  constexpr bool HALVES = Codec::GROUP < QUANT_BLOCK;
  const int32_t* minus_sum = HALVES ? tile.minus_halves + (2 * k + HALF) * M : tile.minus_sum + k * M;
  for (int first = 0; first < G * SUBS; first += STRIP) {
    using Products = Sums<Codec, M, STRIP, HALF * VECTORS, VECTORS>;
    I totals[M][STRIP];
    Products::of(parts, first, tile.q + k * Products::WORDS * M, minus_sum, totals);
    LAYBY_UNROLL
    for (int s = 0; s < STRIP; ++s) {
      const int v = first + s, sub = v % SUBS;
      const F scale = Codec::scale(blocks.of(v), parts.of(v), HALF, sub);
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) {
        const F one = simd::set1(tile.scale[k * M + m]);
        acc[m][v] = simd::fma(simd::to_float(totals[m][s]), simd::mul(scale, one), acc[m][v]);
        if constexpr (Codec::MINIMUM) {
          const F minimum = Codec::minimum(blocks.of(v), parts.of(v), HALF, sub);
          const F sum = HALVES ? simd::mul(one, simd::to_float(simd::sub(simd::no_sum(), simd::set1_int(minus_sum[m]))))
                               : simd::set1(tile.sum[k * M + m]);
          acc[m][v] = simd::fma(minimum, sum, acc[m][v]);
        }
      }
    }
  }
}

template <class Codec, Form FORM>
struct QuantizedDot {
  static constexpr int ROWS = simd::QUANTIZED_TILE_ROWS;
  template <int M, int G>
  static void run(const uint8_t* const* groups, int64_t columns, const Tile& tile, const Rows& out) {
    constexpr FormLayout layout = LAYOUTS[static_cast<int>(FORM)];
    constexpr int PARTS = layout.values / QUANT_BLOCK;
    F acc[M][G * SUBS];
    for (int m = 0; m < M; ++m)
      for (int v = 0; v < G * SUBS; ++v) acc[m][v] = simd::zero();
    const uint8_t *block[G], *part[G];
    for (int g = 0; g < G; ++g) block[g] = groups[g];
    for (int64_t k = 0; k < columns / QUANT_BLOCK; k += PARTS) {
      for (int p = 0; p < PARTS; ++p) {
        for (int g = 0; g < G; ++g) {
          part[g] = block[g] + layout.head + p * layout.part;
          if constexpr (G == 1)
            for (int at = 0; at < layout.part; at += 64) simd::prefetch(part[g] + PREFETCH_BYTES + at);
        }
        add_group<Codec, M, G, 0>({block}, {part}, k + p, tile, acc);
        if constexpr (Codec::GROUP < QUANT_BLOCK) add_group<Codec, M, G, 1>({block}, {part}, k + p, tile, acc);
      }
      for (int g = 0; g < G; ++g) block[g] += layout.block_bytes();
    }
    Groups<G>::template store<M>(acc, out);
  }
};

template <Form FORM>
inline F load_weights(const uint8_t* input, int sub) {
  if constexpr (FORM == Form::F32) return simd::load((const float*)input + sub * LANES);
  return simd::load_half((const uint16_t*)input + sub * LANES);
}

template <Form FORM>
struct FloatDot {
  static constexpr int ROWS = TILE_ROWS;
  template <int M, int G>
  static void run(const uint8_t* const* groups, int64_t columns, const Tile& tile, const Rows& out) {
    constexpr int BYTES = LAYOUTS[static_cast<int>(FORM)].part, STRIP = Groups<G>::FLOAT_STRIP;
    F acc[M][G * SUBS];
    for (int first = 0; first < G * SUBS; first += STRIP) {
      F sums[M][STRIP];
      for (int m = 0; m < M; ++m)
        for (int s = 0; s < STRIP; ++s) sums[m][s] = simd::zero();
      for (int64_t k = 0; k < columns; ++k) {
        if (G == 1 && first == 0) simd::prefetch(groups[0] + k * BYTES + PREFETCH_BYTES);
        F weights[STRIP];
        for (int s = 0; s < STRIP; ++s)
          weights[s] = load_weights<FORM>(groups[(first + s) / SUBS] + k * BYTES, (first + s) % SUBS);
        LAYBY_UNROLL
        for (int m = 0; m < M; ++m)
          for (int s = 0; s < STRIP; ++s) sums[m][s] = simd::fma(simd::set1(tile.x[k * M + m]), weights[s], sums[m][s]);
      }
      for (int m = 0; m < M; ++m)
        for (int s = 0; s < STRIP; ++s) acc[m][first + s] = sums[m][s];
    }
    Groups<G>::template store<M>(acc, out);
  }
};

#if defined(LAYBY_BF16)

// A pair of inputs of bfloat16 weights, which lie in pairs, and the rows' numbers for it.
template <int M, int STRIP>
inline void add_bfloats(const simd::Codes* both, int64_t pair, int64_t, const Tile& tile, F (*sums)[STRIP]) {
  LAYBY_UNROLL
  for (int m = 0; m < M; ++m)
    for (int s = 0; s < STRIP; ++s)
      sums[m][s] = simd::add_product_bfloat(sums[m][s], both[s], tile.pairs + pair * M + m);
}

#else

// Where no instruction multiplies pairs, rows are floats and the weights become floats on the way.
template <int M, int STRIP>
inline void add_bfloats(const simd::Codes* both, int64_t pair, int64_t columns, const Tile& tile, F (*sums)[STRIP]) {
  const float* x = tile.x + 2 * pair * M;
  LAYBY_UNROLL
  for (int m = 0; m < M; ++m)
    for (int s = 0; s < STRIP; ++s)
      sums[m][s] = simd::fma(simd::set1(x[m]), simd::low_bfloat(both[s]), sums[m][s]);
  if (2 * pair + 1 == columns) return;
  LAYBY_UNROLL
  for (int m = 0; m < M; ++m)
    for (int s = 0; s < STRIP; ++s)
      sums[m][s] = simd::fma(simd::set1(x[M + m]), simd::high_bfloat(both[s]), sums[m][s]);
}

#endif

struct BfloatDot {
  static constexpr int ROWS = TILE_ROWS;
  template <int M, int G>
  static void run(const uint8_t* const* groups, int64_t columns, const Tile& tile, const Rows& out) {
    constexpr int STRIP = Groups<G>::FLOAT_STRIP;
    F acc[M][G * SUBS];
    for (int first = 0; first < G * SUBS; first += STRIP) {
      F sums[M][STRIP];
      for (int m = 0; m < M; ++m)
        for (int s = 0; s < STRIP; ++s) sums[m][s] = simd::zero();
      for (int64_t pair = 0; pair < (columns + 1) / 2; ++pair) {
        if (G == 1 && first == 0) simd::prefetch(groups[0] + pair * CODE_VECTOR + PREFETCH_BYTES);
        simd::Codes both[STRIP];
        for (int s = 0; s < STRIP; ++s) {
          const int v = first + s;
          both[s] = simd::load_codes(groups[v / SUBS] + pair * CODE_VECTOR + v % SUBS * LANES * 4);
        }
        add_bfloats<M, STRIP>(both, pair, columns, tile, sums);
      }
      for (int m = 0; m < M; ++m)
        for (int s = 0; s < STRIP; ++s) acc[m][first + s] = sums[m][s];
    }
    Groups<G>::template store<M>(acc, out);
  }
};

using DotKernel = void (*)(const uint8_t* const* groups, int64_t columns, const Tile& tile, const Rows& out);

// For each number of groups and of rows.
struct DotKernels {
  DotKernel of[TILE_GROUPS][TILE_ROWS];
};

template <class Dot, int G>
constexpr void put_kernels(DotKernel* of) {
  of[0] = Dot::template run<1, G>;
  of[1] = Dot::template run<2, G>;
  of[2] = Dot::template run<3, G>;
  of[3] = Dot::template run<4, G>;
  if constexpr (Dot::ROWS > 4) {
    of[4] = Dot::template run<5, G>;
    of[5] = Dot::template run<6, G>;
    of[6] = Dot::template run<7, G>;
    of[7] = Dot::template run<8, G>;
  }
}

template <class Dot>
constexpr DotKernels kernels_of() {
  DotKernels kernels = {};
  put_kernels<Dot, 1>(kernels.of[0]);
  if constexpr (TILE_GROUPS > 1) put_kernels<Dot, TILE_GROUPS>(kernels.of[TILE_GROUPS - 1]);
  return kernels;
}

constexpr bool has_nibbles(Form form) { return form == Form::Q4_0 || form == Form::Q4_1 || form == Form::Q4_K; }

template <class Codec, Form FORM>
constexpr DotKernels quantized() {
  static_assert(has_nibbles(FORM) == (Codec::KIND == Product::FOUR_BIT), "codes meet the operand made for them");
  return kernels_of<QuantizedDot<Codec, FORM>>();
}

constexpr DotKernels DOT[] = {
    kernels_of<FloatDot<Form::F32>>(),
    kernels_of<FloatDot<Form::F16>>(),
    kernels_of<BfloatDot>(),
    quantized<OffsetForm<8, false>, Form::Q4_0>(),
    quantized<MinimumForm<false>, Form::Q4_1>(),
    quantized<OffsetForm<16, true>, Form::Q5_0>(),
    quantized<MinimumForm<true>, Form::Q5_1>(),
    quantized<FormQ80, Form::Q8_0>(),
    quantized<FormQ2K, Form::Q2_K>(),
    quantized<FormQ3K, Form::Q3_K>(),
    quantized<SuperMinimumForm<false>, Form::Q4_K>(),
    quantized<SuperMinimumForm<true>, Form::Q5_K>(),
    quantized<FormQ6K, Form::Q6_K>(),
    quantized<FormIQ4NL, Form::IQ4_NL>(),
    quantized<FormIQ4XS, Form::IQ4_XS>(),
    quantized<FormMXFP4, Form::MXFP4>(),
};
static_assert(sizeof(DOT) / sizeof(DOT[0]) == static_cast<int>(Form::COUNT), "kernels for each form");

// out[m][count][16]: outputs of `count` groups from `group` on for the n rows of a tile. The first tile reads group by
// group, as memory likes it; the others find the weights in the cache.
inline void dot(const PackedWeight& weight, int64_t group, int count, const Tile& tile, int64_t n, float* out) {
  const uint8_t* groups[TILE_GROUPS];
  for (int g = 0; g < count; ++g) groups[g] = weight.data + (group + g) * weight.group_bytes;
  const DotKernels& kernels = DOT[static_cast<int>(weight.form)];
  if (!tile.is_first) return kernels.of[count - 1][n - 1](groups, weight.inputs, tile, {out, count * WIDTH});
  for (int g = 0; g < count; ++g)
    kernels.of[0][n - 1](groups + g, weight.inputs, tile, {out + g * WIDTH, count * WIDTH});
}

inline F plus_bias(const LinearPart& part, int64_t column, F sum) {
  return part.bias ? simd::add(sum, simd::load(part.bias + column)) : sum;
}

void finish_groups(const LinearPart& part, int64_t group, int count, Range rows, const float* sums) {
  const int64_t column = group * GROUP_OUTPUTS, width = count * WIDTH;
  for (int64_t r = rows.begin; r < rows.end; ++r, sums += width) {
    float* out = part.out.row(r) + column;
    const float* residual = part.residual.data ? part.residual.row(r) + column : nullptr;
    for (int64_t i = 0; i < width; i += LANES) {
      F x = plus_bias(part, column + i, simd::load(sums + i));
      if (residual) x = simd::add(x, simd::load(residual + i));
      simd::store(out + i, x);
    }
  }
}

// Calls each(unit, tile, rows) for the tiles of rows in blocks that stay in the cache, for each unit of `step` in turn.
template <class Each>
inline void for_tiles(const Operand& x, Range units, int64_t step, Range rows, const Each& each) {
  for (int64_t block = rows.begin; block < rows.end; block += ROW_BLOCK) {
    const int64_t end = block + ROW_BLOCK < rows.end ? block + ROW_BLOCK : rows.end;
    for (int64_t unit = units.begin; unit < units.end; unit += step)
      for (int64_t start = block; start < end; start += most_tile_rows(x))
        each(unit, tile_at(x, start, start == block), Range{start, start + tile_rows(x, start)});
  }
}

}  // namespace

namespace LAYBY_VARIANT {

OperandKind operand_of(Form form) {
#if defined(LAYBY_BF16)
  if (form == Form::BF16) return OperandKind::BFLOAT;
#endif
#if defined(LAYBY_NIBBLE_PAIRS)
  if (has_nibbles(form)) return OperandKind::PAIRED;
#endif
  return is_float(form) ? OperandKind::FLOAT : OperandKind::QUANTIZED;
}

void linear(const LinearPart& part, const Operand& x, Range groups, Range rows) {
  for_tiles(x, groups, TILE_GROUPS, rows, [&](int64_t group, const Tile& tile, Range tile_rows) {
    alignas(64) float sums[TILE_ROWS * TILE_GROUPS * WIDTH];
    const int64_t left = groups.end - group;
    const int count = left < TILE_GROUPS ? static_cast<int>(left) : TILE_GROUPS;
    dot(part.weight, group, count, tile, tile_rows.end - tile_rows.begin, sums);
    finish_groups(part, group, count, tile_rows, sums);
  });
}

void gated_linear(const GatedPart& part, const Operand& x, Range blocks, Range rows) {
  constexpr int GROUPS = QUANT_BLOCK / GROUP_OUTPUTS, AT_ONCE = TILE_GROUPS, TILE = TILE_ROWS * AT_ONCE * WIDTH;
  static_assert(GROUPS % AT_ONCE == 0, "a block of outputs is whole tiles");
  for_tiles(x, blocks, 1, rows, [&](int64_t block, const Tile& tile, Range tile_rows) {
    alignas(64) float gate[GROUPS / AT_ONCE][TILE], up[GROUPS / AT_ONCE][TILE], out[QUANT_BLOCK];
    const int64_t n = tile_rows.end - tile_rows.begin;
    for (int g = 0; g < GROUPS; g += AT_ONCE) {
      dot(part.gate.weight, block * GROUPS + g, AT_ONCE, tile, n, gate[g / AT_ONCE]);
      dot(part.up.weight, block * GROUPS + g, AT_ONCE, tile, n, up[g / AT_ONCE]);
    }
    for (int64_t m = 0; m < n; ++m) {
      for (int i = 0; i < QUANT_BLOCK; i += LANES) {
        const int64_t part_of = i / (AT_ONCE * WIDTH), at = m * AT_ONCE * WIDTH + i % (AT_ONCE * WIDTH);
        const int64_t column = block * QUANT_BLOCK + i;
        const F opened = activate(part.activation, plus_bias(part.gate, column, simd::load(gate[part_of] + at)));
        simd::store(out + i, simd::mul(opened, plus_bias(part.up, column, simd::load(up[part_of] + at))));
      }
      put(part.out, tile_rows.begin + m, block, out);
    }
  });
}

}  // namespace LAYBY_VARIANT
}  // namespace layby
