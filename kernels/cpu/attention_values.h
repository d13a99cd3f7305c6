// Adds the values of a strip of positions, each times its query's weight. Compiled for each variant.
//
// A query adds its own positions in order and no others; queries that see the same positions share the loads.
#pragma once

#include "attention_scores.h"

namespace layby {
namespace {

constexpr int MOST_VALUE_VECTORS = 4;

// What N queries have gathered in a piece so far.
template <int N>
struct Gathered {
  float top[N];        // largest score
  F total[N][SUBS];    // sum of weights, by lane
  float factor[N];     // by which the strip in hand scales down what was gathered before it
  alignas(64) float values[N][MAX_HEAD_DIM];
};

// A strip of a piece: which it is, and the positions of it that each query sees.
template <int N>
struct Strip {
  int64_t index;
  Range seen[N];
};

// acc[n] += weight · value over positions [begin, end) of a strip, for V vectors of the head's width.
template <class Kind, int N, int V>
inline void add_values(const Piece& piece, int64_t strip, Range positions, int64_t stride, int64_t at,
                       const float* weights, F (*acc)[V]) {
  const int64_t bytes = stride * static_cast<int64_t>(sizeof(typename Kind::Number));
  for (int64_t i = positions.begin; i < positions.end;) {
    const int64_t page = strip * STRIP_PAGES + i / PAGE_TOKENS, stop = (i / PAGE_TOKENS + 1) * PAGE_TOKENS;
    const auto* row = (const typename Kind::Number*)piece.values[page] + i % PAGE_TOKENS * stride + at;
    const uint8_t* ahead = piece.is_cold && at == 0 ? piece.values[page + STRIP_PAGES] : nullptr;
    for (; i < stop && i < positions.end; ++i, row += stride) {
      const int64_t line = i % PAGE_TOKENS * bytes / 64;
      fetch(ahead, line, (i % PAGE_TOKENS + 1) * bytes / 64 - line);
      F value[V];
      for (int v = 0; v < V; ++v) value[v] = Kind::load(row + v * LANES);
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n) {
        const F weight = simd::set1(weights[n * STRIP + i]);
        for (int v = 0; v < V; ++v) acc[n][v] = simd::fma(weight, value[v], acc[n][v]);
      }
    }
  }
}

// V vectors of the weighted values of a strip. Positions that all queries see are walked together; what lies before
// and behind is walked by each query alone.
template <class Kind, int N, int V>
inline void gather(const Piece& piece, const Strip<N>& strip, const float* weights, int64_t stride, int64_t at,
                   Gathered<N>& gathered) {
  const Range* seen = strip.seen;
  Range all = {0, STRIP};
  for (int n = 0; n < N; ++n) {
    all.begin = seen[n].begin > all.begin ? seen[n].begin : all.begin;
    all.end = seen[n].end < all.end ? seen[n].end : all.end;
  }
  const bool shared = all.begin < all.end;
  F acc[N][V];
  for (int n = 0; n < N; ++n) {
    for (int v = 0; v < V; ++v)
      acc[n][v] = simd::mul(simd::load(gathered.values[n] + at + v * LANES), simd::set1(gathered.factor[n]));
    const Range alone = {seen[n].begin, shared ? all.begin : seen[n].end};
    add_values<Kind, 1, V>(piece, strip.index, alone, stride, at, weights + n * STRIP, acc + n);
  }
  if (shared) add_values<Kind, N, V>(piece, strip.index, all, stride, at, weights, acc);
  for (int n = 0; n < N; ++n) {
    const Range rest = {all.end, seen[n].end};
    if (shared) add_values<Kind, 1, V>(piece, strip.index, rest, stride, at, weights + n * STRIP, acc + n);
    for (int v = 0; v < V; ++v) simd::store(gathered.values[n] + at + v * LANES, acc[n][v]);
  }
}

// Dimensions [at, end) of the head, V vectors at a time.
template <class Kind, int N, int V>
inline void gather_some(const Piece& piece, const Strip<N>& strip, const float* weights, int64_t stride, Range dims,
                        Gathered<N>& gathered) {
  int64_t at = dims.begin;
  for (; at + V * LANES <= dims.end; at += V * LANES)
    gather<Kind, N, V>(piece, strip, weights, stride, at, gathered);
  for (; at < dims.end; at += LANES) gather<Kind, N, 1>(piece, strip, weights, stride, at, gathered);
}

// The weights of a strip times the scales of one group of the values' dimensions.
template <int N>
inline void scale_weights(const KvLayer& kv, const Piece& piece, const Strip<N>& strip, int64_t group,
                          const float* weights, float* scaled) {
  const int64_t scales_at = value_scales_at(kv);
  for (int n = 0; n < N; ++n)
    for (int64_t i = strip.seen[n].begin / WIDTH * WIDTH; i < strip.seen[n].end; i += LANES) {
      const uint8_t* tile = piece.values[strip.index * STRIP_PAGES + i / PAGE_TOKENS];
      const uint16_t* scales = (const uint16_t*)(tile + scales_at) + group * PAGE_TOKENS + i % PAGE_TOKENS;
      simd::store(scaled + n * STRIP + i, simd::mul(simd::load(weights + n * STRIP + i), simd::load_half(scales)));
    }
  for (int64_t page = strip.index * STRIP_PAGES; page < (strip.index + 1) * STRIP_PAGES && piece.is_cold; ++page)
    fetch(piece.values[page + STRIP_PAGES], scales_at / 64 + group, 1);
}

template <class Kind, int N>
inline void gather_strip(const KvLayer& kv, const Piece& piece, const Strip<N>& strip, const float* weights,
                         Gathered<N>& gathered) {
  const int64_t stride = kv.value_stride;
  if constexpr (!Kind::HAS_SCALES) {
    gather_some<Kind, N, vectors_for(N, MOST_VALUE_VECTORS)>(piece, strip, weights, stride, {0, stride}, gathered);
  } else {
    constexpr int GROUP_VECTORS = KV_GROUP / LANES;
    constexpr int V = vectors_for(N, GROUP_VECTORS < MOST_VALUE_VECTORS ? GROUP_VECTORS : MOST_VALUE_VECTORS);
    alignas(64) float scaled[N * STRIP];
    for (int64_t at = 0; at < stride; at += KV_GROUP) {
      const int64_t end = at + KV_GROUP < stride ? at + KV_GROUP : stride;
      scale_weights<N>(kv, piece, strip, at / KV_GROUP, weights, scaled);
      gather_some<Kind, N, V>(piece, strip, scaled, stride, {at, end}, gathered);
    }
  }
}

}  // namespace
}  // namespace layby
