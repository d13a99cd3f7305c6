// Attention over the paged pool, for decode and prefill alike. Compiled for each variant.
//
// A query walks its positions in pieces of 256, at the same absolute positions whoever else is in the step. A piece is
// reduced by itself (scores, weights relative to its largest score, weighted values in the order of positions) and
// then joined to what came before, in order. Queries that share a key head go together only to share loads; positions
// that one of them may not see never enter its sums, not even with weight zero.
#include "kernels.h"
#include "operand.h"
#include "simd/simd.h"
#include "variant.h"

namespace layby {
namespace {

using simd::ATTENTION_QUERIES;
using simd::KEY_VECTORS;
using simd::VALUE_VECTORS;

constexpr int PIECE_PAGES = PIECE_TOKENS / PAGE_TOKENS;
constexpr float LEAST = -3.0e38f;

// One query's share of a piece: positions [begin, end) of it, counted from the piece's start.
struct Query {
  const float* q;
  float* state;
  int64_t begin, end;
};

struct Piece {
  const uint8_t* keys[PIECE_PAGES];  // the key head's tile in each page
  const uint8_t* values[PIECE_PAGES];
  int64_t begin, end;  // positions that any query of the tile sees
};

inline F load_element(const float* p) { return simd::load(p); }
inline F load_element(const uint16_t* p) { return simd::load_half(p); }

// scores[n][position] = q · k for whole groups of 16 positions around [begin, end).
template <class Element, int N>
inline void score(const Piece& piece, const float* packed, int64_t head_dim, float* scores) {
  constexpr int STEP = KEY_VECTORS * LANES;
  for (int64_t at = piece.begin / STEP * STEP; at < piece.end; at += STEP) {
    const Element* keys = (const Element*)piece.keys[at / PAGE_TOKENS] + at % PAGE_TOKENS;
    F acc[N][KEY_VECTORS];
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < KEY_VECTORS; ++v) acc[n][v] = simd::zero();
    for (int64_t d = 0; d < head_dim; ++d) {
      F k[KEY_VECTORS];
      for (int v = 0; v < KEY_VECTORS; ++v) k[v] = load_element(keys + d * PAGE_TOKENS + v * LANES);
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n) {
        const F q = simd::set1(packed[d * N + n]);
        for (int v = 0; v < KEY_VECTORS; ++v) acc[n][v] = simd::fma(q, k[v], acc[n][v]);
      }
    }
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < KEY_VECTORS; ++v) simd::store(scores + n * PIECE_TOKENS + at + v * LANES, acc[n][v]);
  }
}

// Turns the scores of [begin, end) into weights e^(score - largest), zero in the rest of the outer groups of 16.
inline void weigh(float* scores, int64_t begin, int64_t end, float* largest, float* total) {
  const int64_t first = begin / WIDTH * WIDTH, last = (end + WIDTH - 1) / WIDTH * WIDTH;
  for (int64_t i = first; i < begin; ++i) scores[i] = LEAST;
  for (int64_t i = end; i < last; ++i) scores[i] = LEAST;
  F most[SUBS], sum[SUBS];
  for (int s = 0; s < SUBS; ++s) {
    most[s] = simd::set1(LEAST);
    sum[s] = simd::zero();
  }
  for (int64_t i = first; i < last; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) most[s] = simd::max(most[s], simd::load(scores + i + s * LANES));
  *largest = simd::max16(most);
  const F top = simd::set1(*largest);
  for (int64_t i = first; i < last; i += LANES) simd::store(scores + i, simd::exp(simd::sub(simd::load(scores + i), top)));
  for (int64_t i = first; i < begin; ++i) scores[i] = 0.0f;
  for (int64_t i = end; i < last; ++i) scores[i] = 0.0f;
  for (int64_t i = first; i < last; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) sum[s] = simd::add(sum[s], simd::load(scores + i + s * LANES));
  *total = simd::sum16(sum);
}

// acc[n] += weight · value over positions [begin, end), for V vectors of the head's width.
template <class Element, int N, int V>
inline void add_values(const Piece& piece, int64_t begin, int64_t end, int64_t stride, int64_t at,
                       const float* const* weights, F (*acc)[V]) {
  while (begin < end) {
    const int64_t page = begin / PAGE_TOKENS;
    const int64_t stop = (page + 1) * PAGE_TOKENS < end ? (page + 1) * PAGE_TOKENS : end;
    const Element* row = (const Element*)piece.values[page] + begin % PAGE_TOKENS * stride + at;
    for (; begin < stop; ++begin, row += stride) {
      F value[V];
      for (int v = 0; v < V; ++v) value[v] = load_element(row + v * LANES);
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n) {
        const F weight = simd::set1(weights[n][begin]);
        for (int v = 0; v < V; ++v) acc[n][v] = simd::fma(weight, value[v], acc[n][v]);
      }
    }
  }
}

// V vectors of the weighted values of N queries. Positions that all of them see are walked together; what lies before
// and behind is walked by each query alone, so that every query adds its own positions in order and no others.
template <class Element, int N, int V>
inline void gather_values(const Piece& piece, const Query* queries, const float* scores, int64_t stride, int64_t at,
                          float (*partial)[AttentionState::HEADER + MAX_HEAD_DIM]) {
  int64_t begin = 0, end = PIECE_TOKENS;
  for (int n = 0; n < N; ++n) {
    begin = queries[n].begin > begin ? queries[n].begin : begin;
    end = queries[n].end < end ? queries[n].end : end;
  }
  if (end < begin) end = begin = 0;
  F acc[N][V];
  const float* weights[N];
  for (int n = 0; n < N; ++n) {
    weights[n] = scores + n * PIECE_TOKENS;
    for (int v = 0; v < V; ++v) acc[n][v] = simd::zero();
    const int64_t alone = begin < end ? begin : queries[n].end;
    add_values<Element, 1, V>(piece, queries[n].begin, alone, stride, at, weights + n, acc + n);
  }
  add_values<Element, N, V>(piece, begin, end, stride, at, weights, acc);
  for (int n = 0; n < N; ++n) {
    if (begin < end) add_values<Element, 1, V>(piece, end, queries[n].end, stride, at, weights + n, acc + n);
    for (int v = 0; v < V; ++v) simd::store(partial[n] + AttentionState::HEADER + at + v * LANES, acc[n][v]);
  }
}

template <class Element, int N>
void attend_queries(const Attention& attention, const Piece& piece, const Query* queries, float* scratch) {
  const int64_t head_dim = attention.kv.head_dim, stride = attention.kv.value_stride;
  float* packed = scratch;
  float* scores = packed + N * MAX_HEAD_DIM;
  for (int64_t d = 0; d < head_dim; ++d)
    for (int n = 0; n < N; ++n) packed[d * N + n] = queries[n].q[d] * attention.scale;
  Piece seen = piece;
  seen.begin = PIECE_TOKENS;
  seen.end = 0;
  for (int n = 0; n < N; ++n) {
    seen.begin = queries[n].begin < seen.begin ? queries[n].begin : seen.begin;
    seen.end = queries[n].end > seen.end ? queries[n].end : seen.end;
  }
  score<Element, N>(seen, packed, head_dim, scores);
  alignas(64) float partial[N][AttentionState::HEADER + MAX_HEAD_DIM];
  for (int n = 0; n < N; ++n)
    weigh(scores + n * PIECE_TOKENS, queries[n].begin, queries[n].end, partial[n], partial[n] + 1);
  int64_t at = 0;
  for (; at + VALUE_VECTORS * LANES <= stride; at += VALUE_VECTORS * LANES)
    gather_values<Element, N, VALUE_VECTORS>(seen, queries, scores, stride, at, partial);
  for (; at < stride; at += LANES) gather_values<Element, N, 1>(seen, queries, scores, stride, at, partial);
  for (int n = 0; n < N; ++n) LAYBY_VARIANT::join(queries[n].state, partial[n], stride);
}

template <class Element, int N = ATTENTION_QUERIES>
void attend_all(const Attention& attention, const Piece& piece, const Query* queries, int64_t count, float* scratch) {
  for (; count >= N; count -= N, queries += N) attend_queries<Element, N>(attention, piece, queries, scratch);
  if constexpr (N > 1)
    if (count > 0) attend_all<Element, N - 1>(attention, piece, queries, count, scratch);
}

inline float exp_of(float x) {
  float lanes[LANES];
  simd::store(lanes, simd::exp(simd::set1(x)));
  return lanes[0];
}

}  // namespace

namespace LAYBY_VARIANT {

void attend(const Attention& attention, const StepRows& step, const AttentionTile& tile, Range pieces, float* states,
            float* scratch) {
  const KvLayer& kv = attention.kv;
  const int64_t sharing = attention.heads / kv.kv_heads, size = AttentionState::floats(kv.value_stride);
  const int64_t element = kv.type == KvType::F16 ? 2 : 4;
  const int32_t* pages = step.pages(tile.row);
  for (int64_t p = pieces.begin; p < pieces.end; ++p) {
    const int64_t start = p * PIECE_TOKENS;
    Query queries[MAX_TILE_QUERIES];
    int64_t count = 0, last = 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t position = step.positions[tile.row + r];
      const int64_t oldest = attention.window && position >= attention.window ? position - attention.window + 1 : 0;
      const int64_t begin = oldest > start ? oldest - start : 0;
      const int64_t end = position + 1 - start < PIECE_TOKENS ? position + 1 - start : PIECE_TOKENS;
      if (begin >= end) continue;
      last = end > last ? end : last;
      for (int64_t h = 0; h < sharing; ++h) {
        const int64_t head = tile.kv_head * sharing + h;
        queries[count++] = {attention.query.row(tile.row + r) + head * kv.head_dim, states + (r * sharing + h) * size,
                            begin, end};
      }
    }
    Piece piece = {};
    for (int64_t page = 0; page * PAGE_TOKENS < last; ++page) {
      const uint8_t* base = kv.pool + pages[start / PAGE_TOKENS + page] * kv.page_bytes;
      piece.keys[page] = base + kv.key_offset + tile.kv_head * kv.head_dim * PAGE_TOKENS * element;
      piece.values[page] = base + kv.value_offset + tile.kv_head * kv.value_stride * PAGE_TOKENS * element;
    }
    if (kv.type == KvType::F16)
      attend_all<uint16_t>(attention, piece, queries, count, scratch);
    else
      attend_all<float>(attention, piece, queries, count, scratch);
  }
}

void join(float* state, const float* piece, int64_t value_stride) {
  float* values = state + AttentionState::HEADER;
  const float* more = piece + AttentionState::HEADER;
  if (state[1] == 0.0f) {  // nothing yet
    for (int64_t i = 0; i < AttentionState::floats(value_stride); ++i) state[i] = piece[i];
    return;
  }
  const float top = state[0] > piece[0] ? state[0] : piece[0];
  const float keep = exp_of(state[0] - top), take = exp_of(piece[0] - top);
  const F kept = simd::set1(keep), taken = simd::set1(take);
  state[0] = top;
  state[1] = state[1] * keep + piece[1] * take;
  for (int64_t i = 0; i < value_stride; i += LANES)
    simd::store(values + i, simd::fma(simd::load(more + i), taken, simd::mul(simd::load(values + i), kept)));
}

void finish(const Attention& attention, int64_t row, int64_t head, float* state) {
  const int64_t head_dim = attention.kv.head_dim;
  float* values = state + AttentionState::HEADER;
  const F total = simd::set1(state[1]);
  for (int64_t i = 0; i < attention.kv.value_stride; i += LANES)
    simd::store(values + i, simd::div(simd::load(values + i), total));
  if (!attention.out.rows.data) {  // only with heads of whole blocks
    for (int64_t i = 0; i < head_dim; i += QUANT_BLOCK)
      put_block(attention.out.operand, row, (head * head_dim + i) / QUANT_BLOCK, values + i);
    return;
  }
  float* out = attention.out.rows.row(row) + head * head_dim;
  for (int64_t i = 0; i < head_dim; ++i) out[i] = values[i];
}

const KernelTable TABLE = {LAYBY_VARIANT_NAME, prepare, normalize, linear, gated_linear,
                           gated,              heads,   attend,    join,   finish};

}  // namespace LAYBY_VARIANT
}  // namespace layby
