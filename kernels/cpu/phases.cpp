#include "phases.h"

#include <algorithm>
#include <cmath>

#include "draw.h"
#include "likeliest.h"
#include "pack.h"

namespace layby {
namespace {

constexpr int64_t ROWS_PER_CHUNK = 8;
constexpr int64_t LINEAR_ROW_BLOCK = 64;    // rows of a chunk: their operand stays in the cache
constexpr int64_t MOST_CHUNK_BYTES = 64 << 10;  // of weights, so that a late thread holds up little
constexpr int64_t CHUNKS_PER_THREAD = 8;
constexpr int64_t MOST_AHEAD_BYTES = 32 << 10;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Range part_of(int64_t whole, int64_t index, int64_t of) { return {whole * index / of, whole * (index + 1) / of}; }

Range row_chunk(int64_t rows, int64_t chunk) {
  return {chunk * ROWS_PER_CHUNK, std::min(rows, (chunk + 1) * ROWS_PER_CHUNK)};
}

int64_t groups_of(const PackedWeight& weight) { return ceil_div(weight.outputs, GROUP_OUTPUTS); }

Ahead weights_from(const PackedWeight& weight, int64_t group) {
  const uint8_t* begin = weight.data + group * weight.group_bytes;
  const uint8_t* end = weight.data + groups_of(weight) * weight.group_bytes;
  return {begin, std::min(end, begin + MOST_AHEAD_BYTES)};
}

void prepare(const Step& step, const Input& input, const Operand& out, Range rows) {
  Source source = input.source;
  if (input.gathers) source.index = step.output_rows;
  step.kernels->prepare(source, out, rows);
}

// The operand that a linear layer reads; a step of few rows is prepared here, once by each thread.
Operand operand_for(const Step& step, const Input& input, int64_t phase, int worker) {
  const int64_t rows = rows_of(step, input.extent);
  if (input.is_prepared || rows > ROWS_ALONE) return input.operand.with_rows(rows);
  Worker& mine = step.workers[worker];
  const Operand operand = input.operand.at(mine.operand.as<uint8_t>(), rows);
  const int64_t tag = step.serial << 20 | phase;
  if (mine.prepared != tag) {
    prepare(step, input, operand, {0, rows});
    mine.prepared = tag;
  }
  return operand;
}

}  // namespace

size_t OperandPlace::bytes(OperandKind kind, int64_t columns, int64_t rows) {
  int64_t row = columns * 4;
  if (kind == OperandKind::BFLOAT) row = (columns + 1) / 2 * 4;
  if (is_quantized(kind)) row = columns / QUANT_BLOCK * (words_of_block(kind) + 5) * 4;
  return static_cast<size_t>(rows * row);
}

Operand OperandPlace::at(uint8_t* from, int64_t rows) const {
  Operand o = {};
  o.kind = kind;
  o.rows = rows;
  o.columns = columns;
  if (kind == OperandKind::FLOAT) o.x = reinterpret_cast<float*>(from);
  if (kind == OperandKind::BFLOAT) o.pairs = reinterpret_cast<uint32_t*>(from);
  if (!is_quantized(kind)) return o;
  const int64_t blocks = rows * (columns / QUANT_BLOCK);
  o.q = reinterpret_cast<int32_t*>(from);
  o.scale = reinterpret_cast<float*>(o.q + blocks * words_of_block(kind));
  o.sum = o.scale + blocks;
  o.minus_sum = reinterpret_cast<int32_t*>(o.sum + blocks);
  o.minus_halves = o.minus_sum + blocks;
  return o;
}

int64_t EmbeddingPhase::chunks(const Step& step) const { return ceil_div(step.rows, ROWS_PER_CHUNK); }

void EmbeddingPhase::run(const Step& step, int64_t chunk, int) const {
  const Range rows = row_chunk(step.rows, chunk);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    unpack_row(table_, step.tokens[r], out_.row(r));
    if (scale_ != 1.0f)
      for (int64_t k = 0; k < table_.inputs; ++k) out_.row(r)[k] *= scale_;
  }
}

AnglePhase::AnglePhase(std::vector<float> frequencies, float magnitude, int64_t max_rows)
    : frequencies_(std::move(frequencies)), magnitude_(magnitude),
      memory_(2 * sizeof(float) * static_cast<size_t>(max_rows) * frequencies_.size()) {}

int64_t AnglePhase::chunks(const Step& step) const { return ceil_div(step.rows, ROWS_PER_CHUNK); }

void AnglePhase::run(const Step& step, int64_t chunk, int) const {
  const Range rows = row_chunk(step.rows, chunk);
  const int64_t n = static_cast<int64_t>(frequencies_.size());
  float* cosine = memory_.as<float>() + rows.begin * n;
  float* sine = memory_.as<float>(memory_.size() / 2) + rows.begin * n;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t i = 0; i < n; ++i) {
      // The angle is rounded to a float as in the models' own code; what follows is exact to a rounding.
      const double angle = static_cast<float>(step.sequence_rows.positions[r]) * frequencies_[i];
      *cosine++ = static_cast<float>(std::cos(angle)) * magnitude_;
      *sine++ = static_cast<float>(std::sin(angle)) * magnitude_;
    }
}

int64_t PreparePhase::chunks(const Step& step) const {
  const int64_t rows = rows_of(step, input_.extent);
  return rows > ROWS_ALONE ? ceil_div(rows, ROWS_PER_CHUNK) : 0;
}

void PreparePhase::run(const Step& step, int64_t chunk, int) const {
  const int64_t rows = rows_of(step, input_.extent);
  prepare(step, input_, input_.operand.with_rows(rows), row_chunk(rows, chunk));
}

LinearGrid::LinearGrid(const Step& step, int64_t all_rows, int64_t all_units, int64_t unit_bytes)
    : rows(all_rows), units(all_units) {
  row_chunks = ceil_div(rows, LINEAR_ROW_BLOCK);
  const int64_t by_threads = ceil_div(step.threads * CHUNKS_PER_THREAD, std::max<int64_t>(row_chunks, 1));
  const int64_t by_bytes = ceil_div(units * unit_bytes, MOST_CHUNK_BYTES);
  unit_chunks = std::min(units, std::max(by_threads, by_bytes));
}

// Blocks of rows of one stretch of outputs follow one another, so that its weights are read from memory once.
Range LinearGrid::unit_range(int64_t chunk) const { return part_of(units, chunk / row_chunks, unit_chunks); }

Range LinearGrid::row_range(int64_t chunk) const {
  const int64_t begin = chunk % row_chunks * LINEAR_ROW_BLOCK;
  return {begin, std::min(rows, begin + LINEAR_ROW_BLOCK)};
}

LinearPhase::LinearPhase(int64_t id, const Input& input, std::vector<LinearPart> parts)
    : id_(id), input_(input), parts_(std::move(parts)), groups_(0), group_bytes_(0) {
  for (const LinearPart& part : parts_) {
    groups_ += groups_of(part.weight);
    group_bytes_ = std::max(group_bytes_, part.weight.group_bytes);
  }
}

LinearGrid LinearPhase::grid(const Step& step) const {
  return LinearGrid(step, rows_of(step, input_.extent), groups_, group_bytes_);
}

int64_t LinearPhase::chunks(const Step& step) const { return grid(step).chunks(); }

void LinearPhase::run(const Step& step, int64_t chunk, int worker) const {
  const LinearGrid grid = this->grid(step);
  const Operand x = operand_for(step, input_, id_, worker);
  Range groups = grid.unit_range(chunk);
  for (const LinearPart& part : parts_) {
    const int64_t here = groups_of(part.weight);
    const Range range = {std::max<int64_t>(groups.begin, 0), std::min(groups.end, here)};
    if (range.begin < range.end) step.kernels->linear(part, x, range, grid.row_range(chunk));
    groups.begin -= here;
    groups.end -= here;
  }
}

Ahead LinearPhase::ahead(const Step& step, int64_t chunk) const {
  int64_t group = grid(step).unit_range(chunk).begin;
  for (const LinearPart& part : parts_) {
    if (group < groups_of(part.weight)) return weights_from(part.weight, group);
    group -= groups_of(part.weight);
  }
  return {};
}

GatedLinearPhase::GatedLinearPhase(int64_t id, const Input& input, const GatedPart& part, OperandPlace out)
    : id_(id), input_(input), part_(part), out_(out) {}

LinearGrid GatedLinearPhase::grid(const Step& step) const {
  const int64_t blocks = part_.gate.weight.outputs / QUANT_BLOCK, groups = QUANT_BLOCK / GROUP_OUTPUTS;
  const int64_t bytes = groups * (part_.gate.weight.group_bytes + part_.up.weight.group_bytes);
  return LinearGrid(step, rows_of(step, input_.extent), blocks, bytes);
}

int64_t GatedLinearPhase::chunks(const Step& step) const { return grid(step).chunks(); }

void GatedLinearPhase::run(const Step& step, int64_t chunk, int worker) const {
  const LinearGrid grid = this->grid(step);
  GatedPart part = part_;
  if (!part.out.rows.data) part.out.operand = out_.with_rows(grid.rows);
  step.kernels->gated_linear(part, operand_for(step, input_, id_, worker), grid.unit_range(chunk),
                             grid.row_range(chunk));
}

Ahead GatedLinearPhase::ahead(const Step& step, int64_t chunk) const {
  return weights_from(part_.gate.weight, grid(step).unit_range(chunk).begin * (QUANT_BLOCK / GROUP_OUTPUTS));
}

int64_t NormPhase::chunks(const Step& step) const { return ceil_div(rows_of(step, extent_), ROWS_PER_CHUNK); }

void NormPhase::run(const Step& step, int64_t chunk, int) const {
  step.kernels->normalize(source_, out_, row_chunk(rows_of(step, extent_), chunk));
}

int64_t GatedPhase::chunks(const Step& step) const { return ceil_div(rows_of(step, extent_), ROWS_PER_CHUNK); }

void GatedPhase::run(const Step& step, int64_t chunk, int) const {
  const Sink sink = {out_, {}};
  step.kernels->gated(gate_, up_, activation_, sink, row_chunk(rows_of(step, extent_), chunk), columns_);
}

void TakePhase::run(const Step& step, int64_t, int) const {
  for (int64_t r = 0; r < step.outputs; ++r)
    std::copy_n(x_.row(step.output_rows[r]), x_.stride, out_.row(r));
}

void LikeliestPhase::run(const Step& step, int64_t chunk, int) const {
  const int64_t at = chunk * LAYBY_MOST_LIKELIEST;
  const LikeliestPlaces places = {out_.ids + at, out_.values + at, out_.ranking + at};
  const LaybyWish& wish = step.wishes[chunk];
  if (wish.allowed) keep_allowed(x_.row(chunk), width_, wish.allowed, wish.vocabulary);
  out_.counts[chunk] = wish.count ? find_likeliest(x_.row(chunk), width_, wish.count, places) : 0;
  out_.drawn[chunk] = wish.is_drawn ? draw(wish, places, out_.counts[chunk]) : -1;
}

void HeadsPhase::run(const Step& step, int64_t chunk, int) const {
  for (const HeadStream& stream : streams_) step.kernels->heads(stream, step.sequence_rows, {chunk, chunk + 1});
}

int64_t AttentionPhase::chunks(const Step&) const { return plan_->chunks(); }

void AttentionPhase::run(const Step& step, int64_t chunk, int worker) const {
  const AttentionWork& work = plan_->work(chunk);
  const AttentionTile tile = {work.row, work.rows, plan_->kv_head(chunk)};
  Attention attention = attention_;
  if (!attention.out.rows.data) attention.out.operand = out_.with_rows(step.rows);
  const bool is_split = work.split >= 0;
  const int64_t floats = plan_->state_floats() * tile.rows;
  float* states = is_split ? plan_->states(work.split, tile.kv_head, work.pieces.begin)
                           : step.workers[worker].states.as<float>();
  std::fill_n(states, floats, 0.0f);
  step.kernels->attend(attention, step.sequence_rows, tile, work.pieces, plan_->after(chunk), states);
  if (is_split) {
    if (!plan_->finish_piece(work.split, tile.kv_head)) return;
    states = step.workers[worker].states.as<float>();
    std::fill_n(states, floats, 0.0f);
    join_pieces(step, work.split, tile.kv_head, states);
  }
  const int64_t sharing = plan_->shape().sharing();
  for (int64_t i = 0; i < tile.rows * sharing; ++i)
    step.kernels->finish(attention, tile.row + i / sharing, tile.kv_head * sharing + i % sharing,
                         states + i * (plan_->state_floats() / sharing));
}

void AttentionPhase::join_pieces(const Step& step, int64_t split, int64_t kv_head, float* states) const {
  const Range pieces = plan_->split_tile(split).pieces;
  const int64_t sharing = plan_->shape().sharing(), size = plan_->state_floats() / sharing;
  for (int64_t p = pieces.begin; p < pieces.end; ++p)
    for (int64_t h = 0; h < sharing; ++h)
      step.kernels->join(states + h * size, plan_->states(split, kv_head, p) + h * size,
                         plan_->shape().value_stride);
}

}  // namespace layby
