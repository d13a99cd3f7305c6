// How the rows of a step are cut into tiles and pieces for attention; made once a step for all layers alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels.h"
#include "memory.h"

namespace layby {

// Heads and window that a plan is for; layers that agree in them share it.
struct AttentionShape {
  int64_t heads, kv_heads, value_stride, window;
  bool operator==(const AttentionShape& o) const {
    return heads == o.heads && kv_heads == o.kv_heads && value_stride == o.value_stride && window == o.window;
  }
  int64_t sharing() const { return heads / kv_heads; }
  int64_t tile_rows() const;
};

// One piece of work for each key head: pieces of a tile. Where a tile is split, each of its pieces is such work, and
// who finishes the last one joins them.
struct AttentionWork {
  int64_t row, rows;
  Range pieces;
  int64_t split = -1;  // which split tile, -1: whole
};

struct SplitTile {
  Range pieces;
  int64_t first_slot;
};

class AttentionPlan {
 public:
  explicit AttentionPlan(const AttentionShape& shape) : shape_(shape) {}

  const AttentionShape& shape() const { return shape_; }
  // Throws std::bad_alloc.
  void make(const StepRows& step, int64_t rows, int threads);

  int64_t chunks() const { return static_cast<int64_t>(work_.size()) * shape_.kv_heads; }
  const AttentionWork& work(int64_t chunk) const { return work_[chunk / shape_.kv_heads]; }
  // Where the chunk behind this one begins.
  NextPiece after(int64_t chunk) const;
  int64_t kv_head(int64_t chunk) const { return chunk % shape_.kv_heads; }

  const SplitTile& split_tile(int64_t split) const { return splits_[split]; }
  // The states of the queries that share a key head, for one piece of a split tile.
  float* states(int64_t split, int64_t kv_head, int64_t piece) const;
  int64_t state_floats() const { return shape_.sharing() * AttentionState::floats(shape_.value_stride); }
  // True for the caller that finishes the last piece.
  bool finish_piece(int64_t split, int64_t kv_head);

 private:
  Range pieces_of(const StepRows& step, int64_t row, int64_t rows) const;
  void split(const AttentionWork& tile);
  void reset();

  AttentionShape shape_;
  std::vector<AttentionWork> tiles_, work_;
  std::vector<SplitTile> splits_;
  int64_t slots_ = 0;
  Memory partial_;
  std::unique_ptr<std::atomic<int32_t>[]> left_;
  size_t left_size_ = 0;
};

}  // namespace layby
