// Queries times the keys of a page: in floats where keys are numbers, in integers where they are bytes.
//
// Compiled for each variant. A score is one sum over the head's dimensions in one order, or, with bytes, exact integer
// sums over 32 of them joined in order; whoever else shares the loads changes nothing in it.
#pragma once

#include "kv_tiles.h"
#include "operand.h"
#include "simd/simd.h"

namespace layby {
namespace {

using simd::I;

constexpr int STRIP = 64;  // positions; keys and values of this strip and the next fit the first-level cache
constexpr int STRIP_PAGES = STRIP / PAGE_TOKENS;
constexpr int PIECE_PAGES = PIECE_TOKENS / PAGE_TOKENS;

// The key head's tiles in the pages of a piece, then in the first pages of what is likely to come after it, which are
// fetched while this piece's last ones are in use; null where there are none.
struct Piece {
  const uint8_t* keys[PIECE_PAGES + STRIP_PAGES];
  const uint8_t* values[PIECE_PAGES + STRIP_PAGES];
  bool is_cold;  // a single row meets its pages once: they come from memory
};

// Vectors of positions or values that are in registers together with their sums for so many queries, and one more; a
// power of two, up to `most`.
constexpr int vectors_for(int queries, int most) {
  int vectors = 1;
  while (2 * vectors <= most && 2 * vectors * (queries + 1) < simd::REGISTERS) vectors *= 2;
  return vectors;
}
template <int N>
constexpr int KEY_VECTORS = vectors_for(N, PAGE_TOKENS / LANES);

// How keys and values are stored, as a type: numbers of one kind, or bytes with scales.
struct Float {
  using Number = float;
  static constexpr bool HAS_SCALES = false;
  static F load(const float* p) { return simd::load(p); }
};
struct Half {
  using Number = uint16_t;
  static constexpr bool HAS_SCALES = false;
  static F load(const uint16_t* p) { return simd::load_half(p); }
};
struct Bytes {
  using Number = uint8_t;
  static constexpr bool HAS_SCALES = true;
  static F load(const uint8_t* p) { return simd::load_signed_bytes(p); }
};

// Asks for `count` cache lines of a tile, so that memory works while sums are made.
LAYBY_ALWAYS_INLINE void fetch(const uint8_t* tile, int64_t first, int64_t count) {
  if (!tile) return;
  for (int64_t line = first; line < first + count; ++line) simd::prefetch(tile + line * 64);
}

// N queries, scaled.
template <class Kind, int N>
struct Queries {
  alignas(64) float x[N][MAX_HEAD_DIM];

  void put(int n, const float* query, float scale, int64_t head_dim) {
    for (int64_t d = 0; d < head_dim; ++d) x[n][d] = query[d] * scale;
  }
};

// The same as codes of two digits each (see Operand), by groups of 32 dimensions; what lies behind the head is zero.
template <int N>
struct Queries<Bytes, N> {
  static constexpr int GROUPS = MAX_HEAD_DIM / KV_GROUP;
  static constexpr int QUADS = KV_GROUP / QUAD;  // of a group, for each of the two digits
  alignas(64) int32_t words[N][GROUPS][2][QUADS];
  int32_t minus_sum[N][GROUPS];
  float scale[N][GROUPS];

  void put(int n, const float* query, float factor, int64_t head_dim) {
    for (int64_t g = 0; g < kv_groups(head_dim); ++g) {
      alignas(64) float values[KV_GROUP];
      for (int64_t i = 0; i < KV_GROUP; ++i) values[i] = g * KV_GROUP + i < head_dim ? query[g * KV_GROUP + i] * factor : 0.0f;
      int32_t totals[2];
      scale[n][g] = quantize_block(values, words[n][g][0], totals);
      minus_sum[n][g] = -(totals[0] + totals[1]);
    }
  }
};

// scores[n][i] = q · k for KEY_VECTORS vectors of a page's positions, from the one on that is `at` in it.
template <class Kind, int N>
inline void score(const KvLayer& kv, const Piece& piece, int64_t page, int64_t at, const Queries<Kind, N>& queries,
                  F (*acc)[KEY_VECTORS<N>]) {
  constexpr int V = KEY_VECTORS<N>;
  constexpr int64_t LINES = PAGE_TOKENS * sizeof(typename Kind::Number) / 64;  // of a tile, for each dimension
  const auto* keys = (const typename Kind::Number*)piece.keys[page] + at;
  const uint8_t* ahead = piece.is_cold && at == 0 ? piece.keys[page + STRIP_PAGES] : nullptr;
  for (int64_t d = 0; d < kv.head_dim; ++d) {
    fetch(ahead, d * LINES, LINES);
    F k[V];
    for (int v = 0; v < V; ++v) k[v] = Kind::load(keys + d * PAGE_TOKENS + v * LANES);
    LAYBY_UNROLL
    for (int n = 0; n < N; ++n) {
      const F q = simd::set1(queries.x[n][d]);
      for (int v = 0; v < V; ++v) acc[n][v] = simd::fma(q, k[v], acc[n][v]);
    }
  }
}

// acc[n][v] += the products of one group of dimensions; `codes` are the keys' at the first of the vectors.
template <int N, int V>
inline void add_key_group(const uint8_t* codes, const uint16_t* key_scales, int64_t quads, int64_t g,
                          const Queries<Bytes, N>& queries, F (*acc)[V]) {
  constexpr int OFFSET = simd::SIGNED_OFFSET >> DIGIT_BITS;  // moved up with the high digits
  I sums[N][V];
  for (int n = 0; n < N; ++n)
    for (int v = 0; v < V; ++v) sums[n][v] = simd::set1_int(OFFSET * queries.minus_sum[n][g]);
  for (int digit = 0; digit < 2; ++digit) {
    for (int n = 0; n < N && digit; ++n)
      for (int v = 0; v < V; ++v) sums[n][v] = simd::shift_up<DIGIT_BITS>(sums[n][v]);
    for (int64_t w = 0; w < quads; ++w) {
      simd::SignedCodes k[V];
      for (int v = 0; v < V; ++v)
        k[v] = simd::as_signed(simd::load_codes(codes + (w * PAGE_TOKENS + v * LANES) * QUAD));
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n)
        for (int v = 0; v < V; ++v)
          sums[n][v] = simd::add_product_signed(sums[n][v], k[v], &queries.words[n][g][digit][w]);
    }
  }
  for (int v = 0; v < V; ++v) {
    const F key_scale = simd::load_half(key_scales + v * LANES);
    LAYBY_UNROLL
    for (int n = 0; n < N; ++n) {
      const F scale = simd::mul(key_scale, simd::set1(queries.scale[n][g]));
      acc[n][v] = simd::fma(simd::to_float(sums[n][v]), scale, acc[n][v]);
    }
  }
}

template <int N>
inline void score(const KvLayer& kv, const Piece& piece, int64_t page, int64_t at, const Queries<Bytes, N>& queries,
                  F (*acc)[KEY_VECTORS<N>]) {
  constexpr int64_t QUADS = Queries<Bytes, N>::QUADS, GROUP_LINES = KV_GROUP * PAGE_TOKENS / 64;
  const int64_t quads = key_quads(kv.head_dim), groups = kv_groups(kv.head_dim), scales_at = key_scales_at(kv);
  const uint8_t* tile = piece.keys[page];
  const uint8_t* ahead = piece.is_cold && at == 0 ? piece.keys[page + STRIP_PAGES] : nullptr;
  const uint16_t* key_scales = (const uint16_t*)(tile + scales_at) + at;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t here = quads - g * QUADS < QUADS ? quads - g * QUADS : QUADS;
    fetch(ahead, g * GROUP_LINES, here * QUAD * PAGE_TOKENS / 64);
    fetch(ahead, scales_at / 64 + g, 1);
    add_key_group<N, KEY_VECTORS<N>>(tile + (g * QUADS * PAGE_TOKENS + at) * QUAD, key_scales + g * PAGE_TOKENS, here,
                                     g, queries, acc);
  }
}

// The scores of a page, positions counted from the strip's start.
template <class Kind, int N>
inline void score_page(const KvLayer& kv, const Piece& piece, int64_t page, const Queries<Kind, N>& queries,
                       float* scores) {
  constexpr int V = KEY_VECTORS<N>;
  for (int64_t at = 0; at < PAGE_TOKENS; at += V * LANES) {
    F acc[N][V];
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < V; ++v) acc[n][v] = simd::zero();
    score(kv, piece, page, at, queries, acc);
    float* out = scores + page % STRIP_PAGES * PAGE_TOKENS + at;
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < V; ++v) simd::store(out + n * STRIP + v * LANES, acc[n][v]);
  }
}

}  // namespace
}  // namespace layby
