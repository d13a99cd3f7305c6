#include "attention_plan.h"

#include <algorithm>

namespace layby {
namespace {

constexpr int64_t QUERIES = 24;    // of a tile: a multiple of what kernels take at once, small enough for the cache
constexpr int64_t MOST_ROWS = 12;  // of a tile
constexpr int64_t CHUNKS_PER_THREAD = 4;

}  // namespace

int64_t AttentionShape::tile_rows() const {
  return std::clamp<int64_t>(QUERIES / sharing(), 1, MOST_ROWS);
}

void AttentionPlan::make(const StepRows& step, int64_t rows, int threads) {
  tiles_.clear();
  work_.clear();
  splits_.clear();
  slots_ = 0;
  for (int64_t row = 0; row < rows;) {
    int64_t end = row + 1;
    while (end < rows && end - row < shape_.tile_rows() && step.sequences[end] == step.sequences[row]) ++end;
    tiles_.push_back({row, end - row, pieces_of(step, row, end - row)});
    row = end;
  }
  const int64_t whole = static_cast<int64_t>(tiles_.size()) * shape_.kv_heads;
  const bool is_short = whole < threads * CHUNKS_PER_THREAD;
  for (const AttentionWork& tile : tiles_) {
    if (is_short && tile.rows == 1 && tile.pieces.end - tile.pieces.begin > 1)
      split(tile);
    else
      work_.push_back(tile);
  }
  const size_t counters = splits_.size() * static_cast<size_t>(shape_.kv_heads);
  if (left_size_ < counters) {
    left_ = std::make_unique<std::atomic<int32_t>[]>(counters);
    left_size_ = counters;
  }
  const size_t bytes = static_cast<size_t>(slots_ * shape_.kv_heads * state_floats()) * sizeof(float);
  if (partial_.size() < bytes) partial_ = Memory(2 * bytes);
  reset();
}

// Before the first layer: nothing of the split tiles is done. Who finishes one says so for the next layer.
void AttentionPlan::reset() {
  for (size_t s = 0; s < splits_.size(); ++s)
    for (int64_t h = 0; h < shape_.kv_heads; ++h)
      left_[s * shape_.kv_heads + h].store(static_cast<int32_t>(splits_[s].pieces.end - splits_[s].pieces.begin));
}

Range AttentionPlan::pieces_of(const StepRows& step, int64_t row, int64_t rows) const {
  int64_t first = step.positions[row], last = first;
  for (int64_t r = row + 1; r < row + rows; ++r) {
    first = std::min<int64_t>(first, step.positions[r]);
    last = std::max<int64_t>(last, step.positions[r]);
  }
  const int64_t oldest = shape_.window ? std::max<int64_t>(0, first - shape_.window + 1) : 0;
  return {oldest / PIECE_TOKENS, last / PIECE_TOKENS + 1};
}

void AttentionPlan::split(const AttentionWork& tile) {
  const int64_t index = static_cast<int64_t>(splits_.size());
  splits_.push_back({tile.pieces, slots_});
  slots_ += tile.pieces.end - tile.pieces.begin;
  for (int64_t p = tile.pieces.begin; p < tile.pieces.end; ++p) work_.push_back({tile.row, 1, {p, p + 1}, index});
}

NextPiece AttentionPlan::after(int64_t chunk) const {
  if (chunk + 1 >= chunks()) return {-1, 0, 0};
  const AttentionWork& next = work(chunk + 1);
  return {next.row, kv_head(chunk + 1), next.pieces.begin};
}

float* AttentionPlan::states(int64_t split, int64_t kv_head, int64_t piece) const {
  const int64_t slot = splits_[split].first_slot + piece - splits_[split].pieces.begin;
  return partial_.as<float>() + (slot * shape_.kv_heads + kv_head) * state_floats();
}

bool AttentionPlan::finish_piece(int64_t split, int64_t kv_head) {
  std::atomic<int32_t>& left = left_[split * shape_.kv_heads + kv_head];
  if (left.fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
  // Ready for the next layer, which begins after this one's last chunk.
  left.store(static_cast<int32_t>(splits_[split].pieces.end - splits_[split].pieces.begin));
  return true;
}

}  // namespace layby
