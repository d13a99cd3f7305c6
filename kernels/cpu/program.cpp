#include "program.h"

#include <algorithm>
#include <stdexcept>

#include "kv_tiles.h"

namespace layby {
namespace {

constexpr int64_t ROW_ALIGNMENT = 32;  // floats; a block of values may be written past the width
constexpr int64_t MAX_WIDTH = int64_t{1} << 28;
constexpr int64_t MAX_ROWS = int64_t{1} << 24;
constexpr int64_t MOST_PHASES = int64_t{1} << 20;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

void require(bool holds, const char* what) {
  if (!holds) refuse(what);
}

OperandKind operand_kind(int32_t buffer_kind) {
  require(buffer_kind >= LAYBY_FLOAT_OPERAND && buffer_kind <= LAYBY_PAIRED_OPERAND, "no such kind of buffer");
  return static_cast<OperandKind>(buffer_kind - LAYBY_FLOAT_OPERAND);
}

}  // namespace

Program::Program(const KernelTable& kernels, int64_t max_rows, int64_t max_outputs)
    : kernels_(kernels), max_rows_(max_rows), max_outputs_(max_outputs) {
  require(max_rows > 0 && max_outputs > 0, "a program needs room for at least one row and one output");
  require(max_rows <= MAX_ROWS && max_outputs <= MAX_ROWS, "a program has room for 2^24 rows at most");
}

void Program::set_pool(uint8_t* pool, int64_t page_bytes, int32_t pages, KvType type) {
  require(pool && page_bytes > 0 && pages > 0, "the pool has no pages");
  require(kv_layers_.empty(), "the pool is set before its layers");
  pool_ = {pool, page_bytes, 0, 0, type, 0, 0, 0};
  pages_ = pages;
}

int Program::add_buffer(int32_t kind, int64_t width, Extent extent) {
  require(width > 0 && width <= MAX_WIDTH, "a buffer has a width, of 2^28 at most");
  require(extent == Extent::TOKENS || extent == Extent::OUTPUTS, "no such extent");
  const int64_t most = extent == Extent::TOKENS ? max_rows_ : max_outputs_;
  Buffer buffer = {kind, width, extent, (width + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT, {}};
  if (kind == LAYBY_ROWS) {
    buffer.memory = Memory(static_cast<size_t>(most * buffer.stride) * sizeof(float));
  } else {
    const OperandKind prepared = operand_kind(kind);
    require(!is_quantized(prepared) || width % QUANT_BLOCK == 0, "quantised rows are whole blocks of 32");
    buffer.memory = Memory(OperandPlace::bytes(prepared, width, most));
  }
  buffers_.push_back(std::move(buffer));
  return static_cast<int>(buffers_.size()) - 1;
}

const Program::Buffer& Program::buffer(int32_t index, int64_t width) const {
  require(index >= 0 && index < static_cast<int32_t>(buffers_.size()), "no such buffer");
  require(width < 0 || buffers_[index].width == width, "the buffer has another width");
  return buffers_[index];
}

Rows Program::rows(int32_t index) const {
  const Buffer& from = buffer(index);
  require(from.kind == LAYBY_ROWS, "the buffer holds no rows");
  return {from.memory.as<float>(), from.stride};
}

OperandPlace Program::operand(int32_t index) const {
  const Buffer& from = buffer(index);
  require(from.kind != LAYBY_ROWS, "the buffer is no operand");
  return {operand_kind(from.kind), from.width, from.memory.as<uint8_t>()};
}

int Program::add_kv_layer(const LaybyKvLayer& layer) {
  require(pool_.pool, "a layer of keys and values needs a pool");
  KvLayer kv = pool_;
  kv.key_offset = layer.key_offset;
  kv.value_offset = layer.value_offset;
  kv.kv_heads = layer.kv_heads;
  kv.head_dim = layer.head_dim;
  kv.value_stride = layer.value_stride;
  require(kv.kv_heads > 0 && kv.head_dim > 0 && kv.value_stride >= kv.head_dim, "a layer has heads");
  require(kv.value_stride <= MAX_HEAD_DIM && kv.value_stride % GROUP_OUTPUTS == 0, "heads are too wide");
  const int64_t keys = kv.kv_heads * key_tile_bytes(kv), values = kv.kv_heads * value_tile_bytes(kv);
  require(kv.key_offset >= 0 && kv.key_offset + keys <= kv.page_bytes, "keys leave the page");
  require(kv.value_offset >= 0 && kv.value_offset + values <= kv.page_bytes, "values leave the page");
  kv_layers_.push_back(kv);
  return static_cast<int>(kv_layers_.size()) - 1;
}

const KvLayer& Program::kv_layer(int32_t index) const {
  require(index >= 0 && index < static_cast<int32_t>(kv_layers_.size()), "no such layer of keys and values");
  return kv_layers_[index];
}

int Program::add_rotary(std::vector<float> frequencies, float magnitude) {
  auto phase = std::make_unique<AnglePhase>(std::move(frequencies), magnitude, max_rows_);
  rotaries_.push_back(phase.get());
  phases_.push_back(std::move(phase));
  return static_cast<int>(rotaries_.size()) - 1;
}

void Program::add_embedding(const PackedWeight& table, float scale, int32_t out) {
  require(buffer(out, table.inputs).extent == Extent::TOKENS, "an embedding writes a row for each token");
  vocabulary_ = vocabulary_ ? std::min(vocabulary_, table.outputs) : table.outputs;
  phases_.push_back(std::make_unique<EmbeddingPhase>(table, scale, rows(out)));
}

void Program::add_norm(int32_t x, int32_t out, const Norm& norm) {
  const Buffer& from = buffer(x);
  require(norm.group > 0 && from.width % norm.group == 0, "a norm takes whole groups of a row");
  require(buffer(out, from.width).extent == from.extent, "a norm keeps its rows");
  const Source source = {rows(x), nullptr, norm, from.width};
  phases_.push_back(std::make_unique<NormPhase>(from.extent, source, rows(out)));
}

Input Program::input(const LaybyInput& from, int64_t inputs, Form form) {
  const Buffer& given = buffer(from.buffer, inputs);
  Input input = {given.extent, from.operand == LAYBY_NONE, {}, {}, from.gathers != 0};
  input.operand = operand(input.is_prepared ? from.buffer : from.operand);
  require(input.operand.columns == inputs, "the operand has another width");
  require(input.operand.kind == kernels_.operand_of(form), "the operand is of another kind than the weight");
  if (input.is_prepared) return input;
  input.source = {rows(from.buffer), nullptr, {from.norm_weight, from.epsilon, inputs}, inputs};
  if (input.gathers) {
    require(given.extent == Extent::TOKENS, "only rows of tokens are gathered");
    input.extent = Extent::OUTPUTS;
  }
  require(buffer(from.operand).extent == input.extent, "the operand has other rows");
  operand_bytes_ = std::max(operand_bytes_, OperandPlace::bytes(input.operand.kind, inputs, ROWS_ALONE));
  phases_.push_back(std::make_unique<PreparePhase>(input));
  return input;
}

LinearPart Program::part(const LaybyLinear& from, const Input& input, bool has_rows) const {
  LinearPart part = {};
  part.weight = reinterpret_cast<const Weight*>(from.weight)->packed();
  require(part.weight.inputs == input.operand.columns, "the weight takes rows of another width");
  require(kernels_.operand_of(part.weight.form) == input.operand.kind, "weights of one input are of one kind");
  part.bias = from.bias;
  if (!has_rows) return part;
  require(buffer(from.out, part.weight.outputs).extent == input.extent, "a linear layer keeps its rows");
  part.out = rows(from.out);
  if (from.residual != LAYBY_NONE) {
    require(buffer(from.residual, part.weight.outputs).extent == input.extent, "the residual has other rows");
    part.residual = rows(from.residual);
  }
  return part;
}

void Program::add_linear(const LaybyInput& from, const LaybyLinear* parts, int32_t count) {
  require(count > 0, "a linear phase has parts");
  const PackedWeight& first = reinterpret_cast<const Weight*>(parts[0].weight)->packed();
  const Input in = input(from, first.inputs, first.form);
  std::vector<LinearPart> all;
  for (int32_t i = 0; i < count; ++i) all.push_back(part(parts[i], in, true));
  phases_.push_back(std::make_unique<LinearPhase>(phases(), in, std::move(all)));
}

void Program::add_gated_linear(const LaybyInput& from, const LaybyLinear* parts, Activation activation, int32_t out) {
  const PackedWeight& gate = reinterpret_cast<const Weight*>(parts[0].weight)->packed();
  const Input in = input(from, gate.inputs, gate.form);
  GatedPart gated = {part(parts[0], in, false), part(parts[1], in, false), activation, {}};
  require(gated.up.weight.outputs == gate.outputs, "gate and up have as many outputs");
  require(gate.outputs % QUANT_BLOCK == 0, "a gated layer has whole blocks of outputs");
  const Buffer& to = buffer(out, gate.outputs);
  require(to.extent == in.extent, "a gated layer keeps its rows");
  OperandPlace place = {};
  if (to.kind == LAYBY_ROWS)
    gated.out.rows = rows(out);
  else
    place = operand(out);
  phases_.push_back(std::make_unique<GatedLinearPhase>(phases(), in, gated, place));
}

void Program::add_gated(int32_t gate, int32_t up, Activation activation, int32_t out) {
  const Buffer& from = buffer(gate);
  require(buffer(up, from.width).extent == from.extent && buffer(out, from.width).extent == from.extent,
          "gate, up and what comes out have the same rows");
  phases_.push_back(
      std::make_unique<GatedPhase>(from.extent, rows(gate), rows(up), activation, rows(out), from.width));
}

void Program::add_heads(const LaybyHeads* streams, int32_t count) {
  std::vector<HeadStream> all;
  for (int32_t i = 0; i < count; ++i) {
    const LaybyHeads& from = streams[i];
    const int64_t width = int64_t{from.heads} * from.head_dim;
    require(from.heads > 0 && from.head_dim > 0 && from.head_dim <= MAX_HEAD_DIM, "heads are too wide");
    require(buffer(from.x, width).extent == Extent::TOKENS, "heads are of tokens");
    HeadStream stream = {};
    stream.x = rows(from.x);
    stream.heads = from.heads;
    stream.head_dim = from.head_dim;
    stream.norm = {from.norm_weight, from.epsilon, from.head_dim};
    stream.sink = static_cast<HeadSink>(from.sink);
    if (from.rotary != LAYBY_NONE) {
      require(from.rotary >= 0 && from.rotary < static_cast<int32_t>(rotaries_.size()), "no such rotation");
      const AnglePhase* angles = rotaries_[from.rotary];
      stream.cosines = angles->cosines();
      stream.sines = angles->sines();
      stream.rotary_dim = angles->rotary_dim();
      require(stream.rotary_dim <= from.head_dim, "a rotation is no wider than a head");
    }
    if (stream.sink == HeadSink::ROWS) {
      require(buffer(from.out, width).extent == Extent::TOKENS, "heads keep their rows");
      stream.out = rows(from.out);
    } else {
      stream.kv = kv_layer(from.layer);
      require(stream.kv.kv_heads == from.heads && stream.kv.head_dim == from.head_dim, "the pool has other heads");
    }
    all.push_back(stream);
  }
  phases_.push_back(std::make_unique<HeadsPhase>(std::move(all)));
}

AttentionPlan* Program::plan_for(const AttentionShape& shape) {
  for (const auto& plan : plans_)
    if (plan->shape() == shape) return plan.get();
  plans_.push_back(std::make_unique<AttentionPlan>(shape));
  return plans_.back().get();
}

void Program::add_attention(const LaybyAttention& from) {
  Attention attention = {};
  attention.kv = kv_layer(from.layer);
  attention.heads = from.heads;
  attention.scale = from.scale;
  attention.window = from.window;
  const KvLayer& kv = attention.kv;
  require(from.heads > 0 && from.heads % kv.kv_heads == 0, "query heads share key heads evenly");
  require(from.window >= 0, "a window is not negative");
  const AttentionShape shape = {from.heads, kv.kv_heads, kv.value_stride, from.window};
  require(shape.sharing() <= MAX_TILE_QUERIES, "too many query heads share a key head");
  const int64_t width = int64_t{from.heads} * kv.head_dim;
  require(buffer(from.query, width).extent == Extent::TOKENS, "queries are of tokens");
  require(buffer(from.out, width).extent == Extent::TOKENS, "attention keeps its rows");
  attention.query = rows(from.query);
  OperandPlace place = {};
  if (buffer(from.out).kind == LAYBY_ROWS) {
    attention.out.rows = rows(from.out);
  } else {
    require(kv.head_dim % QUANT_BLOCK == 0, "only heads of whole blocks become an operand");
    place = operand(from.out);
  }
  AttentionPlan* plan = plan_for(shape);
  state_floats_ = std::max(state_floats_, static_cast<size_t>(plan->state_floats() * shape.tile_rows()));
  phases_.push_back(std::make_unique<AttentionPhase>(attention, place, plan));
}

void Program::add_take(int32_t x, int32_t out) {
  const Buffer& from = buffer(x);
  require(from.extent == Extent::TOKENS && buffer(out, from.width).extent == Extent::OUTPUTS,
          "rows are taken from tokens to outputs");
  phases_.push_back(std::make_unique<TakePhase>(rows(x), rows(out)));
}

void Program::add_likeliest(int32_t x, const LaybyFound& out) {
  const Buffer& from = buffer(x);
  require(from.extent == Extent::OUTPUTS, "the likeliest are of outputs");
  require(out.counts && out.drawn && out.ids && out.values && out.ranking, "the likeliest have nowhere to go");
  phases_.push_back(std::make_unique<LikeliestPhase>(rows(x), from.width, out));
}

int64_t Program::chunks(int phase) {
  if (is_measured_) opened_[phase] = std::chrono::steady_clock::now();
  return phases_[phase]->chunks(step_);
}

Ahead Program::ahead(int phase, int worker) const {
  int64_t chunks = 0;
  while (chunks == 0 && ++phase < phases()) chunks = phases_[phase]->chunks(step_);
  if (chunks == 0) return {};
  return phases_[phase]->ahead(step_, chunks * worker / step_.threads);
}

void Program::size_workers(int threads) {
  while (static_cast<int>(workers_.size()) < threads) {
    Worker worker;
    worker.operand = Memory(operand_bytes_);
    worker.states = Memory(state_floats_ * sizeof(float));
    workers_.push_back(std::move(worker));
  }
}

void Program::check_row(const LaybyStep& step, int32_t row) const {
  if (step.tokens[row] < 0 || (vocabulary_ && step.tokens[row] >= vocabulary_))
    refuse("token " + std::to_string(step.tokens[row]) + " of row " + std::to_string(row) +
           " is not in the vocabulary of " + std::to_string(vocabulary_));
  const int32_t sequence = step.row_sequences[row], position = step.positions[row];
  if (sequence < 0 || sequence >= step.sequences)
    refuse("row " + std::to_string(row) + " is of sequence " + std::to_string(sequence) + ", the step has " +
           std::to_string(step.sequences));
  if (position < 0 || position / PAGE_TOKENS >= step.table_stride)
    refuse("position " + std::to_string(position) + " of row " + std::to_string(row) + " has no page");
  // Rows of a sequence stand together and ascend, so its last one knows all pages that it may read.
  const bool is_last = row + 1 == step.rows || step.row_sequences[row + 1] != sequence;
  if (!is_last) {
    require(step.positions[row + 1] > position, "the positions of a sequence must ascend");
    return;
  }
  const int32_t* pages = step.page_tables + int64_t{sequence} * step.table_stride;
  for (int32_t p = 0; p <= position / PAGE_TOKENS; ++p)
    if (pages[p] < 0 || pages[p] >= pages_)
      refuse("page " + std::to_string(pages[p]) + " of sequence " + std::to_string(sequence) +
             " is not in the pool of " + std::to_string(pages_));
}

void Program::check_step(const LaybyStep& step) const {
  if (step.rows < 1 || step.rows > max_rows_)
    refuse("a step of " + std::to_string(step.rows) + " rows, this program takes 1 to " + std::to_string(max_rows_));
  if (step.outputs < 0 || step.outputs > max_outputs_)
    refuse(std::to_string(step.outputs) + " outputs, this program takes up to " + std::to_string(max_outputs_));
  for (int32_t row = 0; row < step.rows; ++row) check_row(step, row);
  for (int32_t i = 0; i < step.outputs; ++i)
    require(step.output_rows[i] >= 0 && step.output_rows[i] < step.rows, "an output is of a row of the step");
  for (int32_t i = 0; step.wishes && i < step.outputs; ++i)
    if (step.wishes[i].count < 0 || step.wishes[i].count > LAYBY_MOST_LIKELIEST)
      refuse(std::to_string(step.wishes[i].count) + " likeliest tokens, a row gives 0 to " +
             std::to_string(LAYBY_MOST_LIKELIEST));
}

void Program::run(Team& team, const LaybyStep& step) {
  check_step(step);
  require(phases() < MOST_PHASES, "too many phases");
  size_workers(team.threads());
  const StepRows rows = {step.positions, step.row_sequences, step.page_tables, step.table_stride};
  for (const auto& plan : plans_) plan->make(rows, step.rows, team.threads());
  step_ = {&kernels_,      step.rows, step.outputs,   step.tokens,    step.output_rows,
           step.wishes, rows,      team.threads(), ++serial_,      workers_.data()};
  if (is_measured_) opened_.assign(phases_.size() + 1, {});
  team.run(*this);
  if (is_measured_) opened_.back() = std::chrono::steady_clock::now();
}

std::vector<int64_t> Program::phase_nanoseconds() const {
  std::vector<int64_t> times;
  for (size_t i = 0; i + 1 < opened_.size(); ++i)
    times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(opened_[i + 1] - opened_[i]).count());
  return times;
}

}  // namespace layby
