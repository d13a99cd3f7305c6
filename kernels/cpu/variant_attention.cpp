// Attention over the paged pool, for decode and prefill alike. Compiled for each variant.
//
// A query walks its positions in pieces of 256, at the same absolute positions whoever else is in the step. Within a
// piece it goes in strips of 64: scores, then weights relative to the largest score so far, then weighted values in
// the order of positions; what was gathered before is scaled down when a larger score appears. A finished piece is
// joined to the pieces before it, in order. Queries that share a key head go together only to share loads; positions
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

constexpr int STRIP = 64;  // positions; keys and values of this strip and the next fit the first-level cache
constexpr int STRIP_PAGES = STRIP / PAGE_TOKENS;
constexpr int PIECE_PAGES = PIECE_TOKENS / PAGE_TOKENS;
constexpr float LEAST = -3.0e38f;

// One query's share of a piece: positions [begin, end) of it, counted from the piece's start.
struct Query {
  const float* q;
  float* state;
  int64_t begin, end;
};

// The key head's tiles in the pages of a piece, then in the first pages of what is likely to come after it, which are
// fetched while this piece's last ones are in use; null where there are none.
struct Piece {
  const uint8_t* keys[PIECE_PAGES + STRIP_PAGES];
  const uint8_t* values[PIECE_PAGES + STRIP_PAGES];
  bool is_cold;  // a single row meets its pages once: they come from memory
};

// What N queries have gathered in a piece so far.
template <int N>
struct Gathered {
  float top[N];        // largest score
  F total[N][SUBS];    // sum of weights, by lane
  float factor[N];     // by which the strip in hand scales down what was gathered before it
  alignas(64) float values[N][MAX_HEAD_DIM];
};

inline F load_element(const float* p) { return simd::load(p); }
inline F load_element(const uint16_t* p) { return simd::load_half(p); }

// Asks for `count` cache lines of a tile, so that memory works while sums are made.
LAYBY_ALWAYS_INLINE void fetch(const uint8_t* tile, int64_t first, int64_t count) {
  if (!tile) return;
  for (int64_t line = first; line < first + count; ++line) simd::prefetch(tile + line * 64);
}

inline int64_t clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

// scores[n][i] = q · k for the positions of a page, i counted from the strip's start.
template <class Element, int N>
inline void score_page(const Piece& piece, int64_t page, const float* packed, int64_t head_dim, float* scores) {
  constexpr int STEP = KEY_VECTORS * LANES;
  constexpr int64_t LINES = PAGE_TOKENS * sizeof(Element) / 64;  // of a tile, for each unit of the head's width
  for (int64_t at = 0; at < PAGE_TOKENS; at += STEP) {
    const Element* keys = (const Element*)piece.keys[page] + at;
    const uint8_t* ahead = piece.is_cold && at == 0 ? piece.keys[page + STRIP_PAGES] : nullptr;
    F acc[N][KEY_VECTORS];
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < KEY_VECTORS; ++v) acc[n][v] = simd::zero();
    for (int64_t d = 0; d < head_dim; ++d) {
      fetch(ahead, d * LINES, LINES);
      F k[KEY_VECTORS];
      for (int v = 0; v < KEY_VECTORS; ++v) k[v] = load_element(keys + d * PAGE_TOKENS + v * LANES);
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n) {
        const F q = simd::set1(packed[d * N + n]);
        for (int v = 0; v < KEY_VECTORS; ++v) acc[n][v] = simd::fma(q, k[v], acc[n][v]);
      }
    }
    float* out = scores + page % STRIP_PAGES * PAGE_TOKENS + at;
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < KEY_VECTORS; ++v) simd::store(out + n * STRIP + v * LANES, acc[n][v]);
  }
}

// Turns a query's scores of [begin, end) into weights e^(score - largest so far), zero in the rest of the outer
// groups of 16; sets what the weights before must be multiplied with.
inline void weigh(float* scores, int64_t begin, int64_t end, float* top, float* factor, F* total) {
  const int64_t first = begin / WIDTH * WIDTH, last = (end + WIDTH - 1) / WIDTH * WIDTH;
  for (int64_t i = first; i < begin; ++i) scores[i] = LEAST;
  for (int64_t i = end; i < last; ++i) scores[i] = LEAST;
  F most[SUBS];
  for (int s = 0; s < SUBS; ++s) most[s] = simd::set1(*top);
  for (int64_t i = first; i < last; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) most[s] = simd::max(most[s], simd::load(scores + i + s * LANES));
  const float before = *top;
  *top = simd::max16(most);
  *factor = simd::exp_of(before - *top);
  for (int s = 0; s < SUBS; ++s) total[s] = simd::mul(total[s], simd::set1(*factor));
  for (int64_t i = first; i < last; i += LANES)
    simd::store(scores + i, simd::exp(simd::sub(simd::load(scores + i), simd::set1(*top))));
  for (int64_t i = first; i < begin; ++i) scores[i] = 0.0f;
  for (int64_t i = end; i < last; ++i) scores[i] = 0.0f;
  for (int64_t i = first; i < last; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) total[s] = simd::add(total[s], simd::load(scores + i + s * LANES));
}

// acc[n] += weight · value over positions [begin, end) of a strip, for V vectors of the head's width.
template <class Element, int N, int V>
inline void add_values(const Piece& piece, int64_t strip, Range positions, int64_t stride, int64_t at,
                       const float* weights, F (*acc)[V]) {
  const int64_t lines = stride * static_cast<int64_t>(sizeof(Element)) / 64;  // of a tile, for each position
  for (int64_t i = positions.begin; i < positions.end;) {
    const int64_t page = strip * STRIP_PAGES + i / PAGE_TOKENS, stop = (i / PAGE_TOKENS + 1) * PAGE_TOKENS;
    const Element* row = (const Element*)piece.values[page] + i % PAGE_TOKENS * stride + at;
    const uint8_t* ahead = piece.is_cold && at == 0 ? piece.values[page + STRIP_PAGES] : nullptr;
    for (; i < stop && i < positions.end; ++i, row += stride) {
      fetch(ahead, i % PAGE_TOKENS * lines, lines);
      F value[V];
      for (int v = 0; v < V; ++v) value[v] = load_element(row + v * LANES);
      LAYBY_UNROLL
      for (int n = 0; n < N; ++n) {
        const F weight = simd::set1(weights[n * STRIP + i]);
        for (int v = 0; v < V; ++v) acc[n][v] = simd::fma(weight, value[v], acc[n][v]);
      }
    }
  }
}

// V vectors of the weighted values of a strip. Positions that all queries see are walked together; what lies before
// and behind is walked by each query alone, so that every query adds its own positions in order and no others.
template <class Element, int N, int V>
inline void gather(const Piece& piece, int64_t strip, const Range* seen, const float* weights, int64_t stride,
                   int64_t at, Gathered<N>& gathered) {
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
    add_values<Element, 1, V>(piece, strip, alone, stride, at, weights + n * STRIP, acc + n);
  }
  if (shared) add_values<Element, N, V>(piece, strip, all, stride, at, weights, acc);
  for (int n = 0; n < N; ++n) {
    if (shared) add_values<Element, 1, V>(piece, strip, {all.end, seen[n].end}, stride, at, weights + n * STRIP, acc + n);
    for (int v = 0; v < V; ++v) simd::store(gathered.values[n] + at + v * LANES, acc[n][v]);
  }
}

template <class Element, int N>
inline void attend_strip(const Attention& attention, const Piece& piece, int64_t strip, const Query* queries,
                         const float* packed, Gathered<N>& gathered) {
  alignas(64) float scores[N * STRIP];
  Range seen[N];
  int64_t end = 0;
  for (int n = 0; n < N; ++n) {
    seen[n] = {clamped(queries[n].begin - strip * STRIP, STRIP), clamped(queries[n].end - strip * STRIP, STRIP)};
    end = seen[n].end > end ? seen[n].end : end;
  }
  for (int64_t page = 0; page * PAGE_TOKENS < end; ++page)
    score_page<Element, N>(piece, strip * STRIP_PAGES + page, packed, attention.kv.head_dim, scores);
  for (int n = 0; n < N; ++n) {
    gathered.factor[n] = 1.0f;
    if (seen[n].begin < seen[n].end)
      weigh(scores + n * STRIP, seen[n].begin, seen[n].end, gathered.top + n, gathered.factor + n, gathered.total[n]);
  }
  const int64_t stride = attention.kv.value_stride;
  int64_t at = 0;
  for (; at + VALUE_VECTORS * LANES <= stride; at += VALUE_VECTORS * LANES)
    gather<Element, N, VALUE_VECTORS>(piece, strip, seen, scores, stride, at, gathered);
  for (; at < stride; at += LANES) gather<Element, N, 1>(piece, strip, seen, scores, stride, at, gathered);
}

// Joins what a piece gathered to a state; the first piece is taken as it is.
void join(float* state, float top, float total, const float* gathered, int64_t value_stride) {
  float* values = state + AttentionState::HEADER;
  if (state[1] == 0.0f) {
    state[0] = top;
    state[1] = total;
    for (int64_t i = 0; i < value_stride; ++i) values[i] = gathered[i];
    return;
  }
  const float most = state[0] > top ? state[0] : top;
  const float keep = simd::exp_of(state[0] - most), take = simd::exp_of(top - most);
  state[0] = most;
  state[1] = state[1] * keep + total * take;
  for (int64_t i = 0; i < value_stride; i += LANES) {
    const F kept = simd::mul(simd::load(values + i), simd::set1(keep));
    simd::store(values + i, simd::fma(simd::load(gathered + i), simd::set1(take), kept));
  }
}

template <class Element, int N>
void attend_queries(const Attention& attention, const Piece& piece, const Query* queries, float* packed) {
  const int64_t stride = attention.kv.value_stride;
  int64_t begin = PIECE_TOKENS, end = 0;
  Gathered<N> gathered;
  for (int n = 0; n < N; ++n) {
    for (int64_t d = 0; d < attention.kv.head_dim; ++d) packed[d * N + n] = queries[n].q[d] * attention.scale;
    begin = queries[n].begin < begin ? queries[n].begin : begin;
    end = queries[n].end > end ? queries[n].end : end;
    gathered.top[n] = LEAST;
    for (int s = 0; s < SUBS; ++s) gathered.total[n][s] = simd::zero();
    for (int64_t i = 0; i < stride; i += LANES) simd::store(gathered.values[n] + i, simd::zero());
  }
  for (int64_t strip = begin / STRIP; strip * STRIP < end; ++strip)
    attend_strip<Element, N>(attention, piece, strip, queries, packed, gathered);
  for (int n = 0; n < N; ++n)
    join(queries[n].state, gathered.top[n], simd::sum16(gathered.total[n]), gathered.values[n], stride);
}

template <class Element, int N = ATTENTION_QUERIES>
void attend_all(const Attention& attention, const Piece& piece, const Query* queries, int64_t count, float* scratch) {
  for (; count >= N; count -= N, queries += N) attend_queries<Element, N>(attention, piece, queries, scratch);
  if constexpr (N > 1)
    if (count > 0) attend_all<Element, N - 1>(attention, piece, queries, count, scratch);
}

// The positions of a piece that a query at `position` sees, counted from the piece's start.
inline Range positions_seen(const Attention& attention, int64_t position, int64_t start) {
  const int64_t oldest = attention.window && position >= attention.window ? position - attention.window + 1 : 0;
  return {oldest > start ? oldest - start : 0, position + 1 - start < PIECE_TOKENS ? position + 1 - start : PIECE_TOKENS};
}

// The tiles of a key head in `count` pages from the start of a piece, as far as its row's own position.
inline void find_tiles(const KvLayer& kv, const StepRows& step, const NextPiece& at, int64_t count,
                       const uint8_t** keys, const uint8_t** values) {
  if (at.row < 0) return;
  const int64_t element = kv.type == KvType::F16 ? 2 : 4, first = at.piece * PIECE_PAGES;
  const int64_t last = step.positions[at.row] / PAGE_TOKENS;
  const int32_t* pages = step.pages(at.row);
  for (int64_t page = first; page <= last && page < first + count; ++page) {
    const uint8_t* base = kv.pool + pages[page] * kv.page_bytes;
    keys[page - first] = base + kv.key_offset + at.kv_head * kv.head_dim * PAGE_TOKENS * element;
    values[page - first] = base + kv.value_offset + at.kv_head * kv.value_stride * PAGE_TOKENS * element;
  }
}

}  // namespace

namespace LAYBY_VARIANT {

void attend(const Attention& attention, const StepRows& step, const AttentionTile& tile, Range pieces,
            const NextPiece& next, float* states, float* scratch) {
  const int64_t sharing = attention.heads / attention.kv.kv_heads;
  for (int64_t p = pieces.begin; p < pieces.end; ++p) {
    Query queries[MAX_TILE_QUERIES];
    int64_t count = 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const Range seen = positions_seen(attention, step.positions[tile.row + r], p * PIECE_TOKENS);
      if (seen.begin >= seen.end) continue;
      for (int64_t h = 0; h < sharing; ++h) {
        const int64_t head = tile.kv_head * sharing + h;
        float* state = states + (r * sharing + h) * AttentionState::floats(attention.kv.value_stride);
        queries[count++] = {attention.query.row(tile.row + r) + head * attention.kv.head_dim, state, seen.begin,
                            seen.end};
      }
    }
    const int64_t last_row = tile.row + tile.rows - 1;
    Piece piece = {};
    piece.is_cold = tile.rows == 1;
    find_tiles(attention.kv, step, {last_row, tile.kv_head, p}, PIECE_PAGES, piece.keys, piece.values);
    const NextPiece after = p + 1 == pieces.end ? next : NextPiece{last_row, tile.kv_head, p + 1};
    const int64_t in_use = (positions_seen(attention, step.positions[last_row], p * PIECE_TOKENS).end + STRIP - 1) / STRIP;
    find_tiles(attention.kv, step, after, STRIP_PAGES, piece.keys + in_use * STRIP_PAGES,
               piece.values + in_use * STRIP_PAGES);
    if (attention.kv.type == KvType::F16)
      attend_all<uint16_t>(attention, piece, queries, count, scratch);
    else
      attend_all<float>(attention, piece, queries, count, scratch);
  }
}

void join(float* state, const float* piece, int64_t value_stride) {
  layby::join(state, piece[0], piece[1], piece + AttentionState::HEADER, value_stride);
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
