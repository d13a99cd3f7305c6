// Attention over the paged pool, for decode and prefill alike. Compiled for each variant.
//
// A query walks its positions in pieces of 256, at the same absolute positions whoever else is in the step. Within a
// piece it goes in strips of 64: scores, then weights relative to the largest score so far, then weighted values in
// the order of positions; what was gathered before is scaled down when a larger score appears. A finished piece is
// joined to the pieces before it, in order. Queries that share a key head go together only to share loads; positions
// that one of them may not see never enter its sums, not even with weight zero.
#include "attention_values.h"
#include "kernels.h"
#include "operand.h"
#include "simd/simd.h"
#include "variant.h"

namespace layby {
namespace {

using simd::ATTENTION_QUERIES;

constexpr float LEAST = -3.0e38f;

// One query's share of a piece: positions [begin, end) of it, counted from the piece's start.
struct Query {
  const float* q;
  float* state;
  int64_t begin, end;
};

inline int64_t clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

// The outer groups of 16 of a range of positions.
inline Range widened(Range range) { return {range.begin / WIDTH * WIDTH, (range.end + WIDTH - 1) / WIDTH * WIDTH}; }

// Sets what is in the outer groups but not in the range.
inline void set_outside(float* scores, Range range, float value) {
  const Range outer = widened(range);
  for (int64_t i = outer.begin; i < range.begin; ++i) scores[i] = value;
  for (int64_t i = range.end; i < outer.end; ++i) scores[i] = value;
}

inline float largest(const float* scores, Range groups, float before) {
  F most[SUBS];
  for (int s = 0; s < SUBS; ++s) most[s] = simd::set1(before);
  for (int64_t i = groups.begin; i < groups.end; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) most[s] = simd::max(most[s], simd::load(scores + i + s * LANES));
  return simd::max16(most);
}

// Weights e^(score - top), and their sum.
inline void weigh_groups(float* scores, Range groups, float top) {
  for (int64_t i = groups.begin; i < groups.end; i += LANES)
    simd::store(scores + i, simd::exp_to_88(simd::sub(simd::load(scores + i), simd::set1(top))));
}
inline void add_groups(const float* weights, Range groups, F* total) {
  for (int64_t i = groups.begin; i < groups.end; i += WIDTH)
    for (int s = 0; s < SUBS; ++s) total[s] = simd::add(total[s], simd::load(weights + i + s * LANES));
}

// Turns the queries' scores of what they see into weights e^(score - largest so far), zero in the rest of the outer
// groups of 16; sets what the weights before must be multiplied with.
template <int N>
inline void weigh(const Strip<N>& strip, float* scores, Gathered<N>& gathered) {
  alignas(64) float shift[(N + LANES - 1) / LANES * LANES] = {};
  for (int n = 0; n < N; ++n) {
    const Range seen = strip.seen[n];
    if (seen.begin >= seen.end) continue;
    set_outside(scores + n * STRIP, seen, LEAST);
    const float before = gathered.top[n];
    gathered.top[n] = largest(scores + n * STRIP, widened(seen), before);
    shift[n] = before - gathered.top[n];
  }
  for (int n = 0; n < N; n += LANES) simd::store(shift + n, simd::exp_to_88(simd::load(shift + n)));
  for (int n = 0; n < N; ++n) {
    const Range seen = strip.seen[n];
    gathered.factor[n] = shift[n];
    if (seen.begin >= seen.end) continue;
    F* total = gathered.total[n];
    for (int s = 0; s < SUBS; ++s) total[s] = simd::mul(total[s], simd::set1(shift[n]));
    if (seen.begin == 0 && seen.end == STRIP) {
      weigh_groups(scores + n * STRIP, {0, STRIP}, gathered.top[n]);
      add_groups(scores + n * STRIP, {0, STRIP}, total);
    } else {
      weigh_groups(scores + n * STRIP, widened(seen), gathered.top[n]);
      set_outside(scores + n * STRIP, seen, 0.0f);
      add_groups(scores + n * STRIP, widened(seen), total);
    }
  }
}

template <class Kind, int N>
inline void attend_strip(const KvLayer& kv, const Piece& piece, int64_t index, const Query* queries,
                         const Queries<Kind, N>& packed, Gathered<N>& gathered) {
  alignas(64) float scores[N * STRIP];
  Strip<N> strip = {index, {}};
  int64_t end = 0;
  for (int n = 0; n < N; ++n) {
    strip.seen[n] = {clamped(queries[n].begin - index * STRIP, STRIP), clamped(queries[n].end - index * STRIP, STRIP)};
    end = strip.seen[n].end > end ? strip.seen[n].end : end;
  }
  for (int64_t page = 0; page * PAGE_TOKENS < end; ++page)
    score_page(kv, piece, index * STRIP_PAGES + page, packed, scores);
  weigh<N>(strip, scores, gathered);
  gather_strip<Kind, N>(kv, piece, strip, scores, gathered);
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

template <class Kind, int N>
void attend_queries(const Attention& attention, const Piece& piece, const Query* queries) {
  const int64_t stride = attention.kv.value_stride;
  int64_t begin = PIECE_TOKENS, end = 0;
  Queries<Kind, N> packed;
  Gathered<N> gathered;
  for (int n = 0; n < N; ++n) {
    packed.put(n, queries[n].q, attention.scale, attention.kv.head_dim);
    begin = queries[n].begin < begin ? queries[n].begin : begin;
    end = queries[n].end > end ? queries[n].end : end;
    gathered.top[n] = LEAST;
    for (int s = 0; s < SUBS; ++s) gathered.total[n][s] = simd::zero();
    for (int64_t i = 0; i < stride; i += LANES) simd::store(gathered.values[n] + i, simd::zero());
  }
  for (int64_t strip = begin / STRIP; strip * STRIP < end; ++strip)
    attend_strip<Kind, N>(attention.kv, piece, strip, queries, packed, gathered);
  for (int n = 0; n < N; ++n)
    join(queries[n].state, gathered.top[n], simd::sum16(gathered.total[n]), gathered.values[n], stride);
}

template <class Kind, int N = ATTENTION_QUERIES>
void attend_all(const Attention& attention, const Piece& piece, const Query* queries, int64_t count) {
  for (; count >= N; count -= N, queries += N) attend_queries<Kind, N>(attention, piece, queries);
  if constexpr (N > 1)
    if (count > 0) attend_all<Kind, N - 1>(attention, piece, queries, count);
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
  const int64_t first = at.piece * PIECE_PAGES;
  const int64_t last = step.positions[at.row] / PAGE_TOKENS;
  const int32_t* pages = step.pages(at.row);
  for (int64_t page = first; page <= last && page < first + count; ++page) {
    const uint8_t* base = kv.pool + pages[page] * kv.page_bytes;
    keys[page - first] = base + kv.key_offset + at.kv_head * key_tile_bytes(kv);
    values[page - first] = base + kv.value_offset + at.kv_head * value_tile_bytes(kv);
  }
}

}  // namespace

namespace LAYBY_VARIANT {

void attend(const Attention& attention, const StepRows& step, const AttentionTile& tile, Range pieces,
            const NextPiece& next, float* states) {
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
    switch (attention.kv.type) {
      case KvType::F16: attend_all<Half>(attention, piece, queries, count); break;
      case KvType::F32: attend_all<Float>(attention, piece, queries, count); break;
      case KvType::Q8_0: attend_all<Bytes>(attention, piece, queries, count); break;
    }
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

const KernelTable TABLE = {LAYBY_VARIANT_NAME, operand_of, prepare, normalize, linear, gated_linear,
                           gated,              heads,      attend,  join,      finish};

}  // namespace LAYBY_VARIANT
}  // namespace layby
