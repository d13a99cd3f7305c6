// The phases of a recorded step: how the rows of a step become chunks of work, and which kernel a chunk calls.
//
// Built once from the program; a step changes nothing in them. How many chunks a phase has depends on the step and
// the team, what a chunk computes for a row does not.
#pragma once

#include <cstdint>
#include <vector>

#include "attention_plan.h"
#include "kernels.h"
#include "layby_cpu.h"
#include "memory.h"
#include "team.h"

namespace layby {

constexpr int64_t ROWS_ALONE = 8;  // a step of so few is prepared by each thread for itself

// What every thread has to itself during a step.
struct Worker {
  Memory operand;      // rows prepared by this thread for itself, at most ROWS_ALONE
  Memory states;       // attention: what the queries of a tile have gathered
  int64_t prepared = -1;  // for which phase of which step `operand` holds rows
};

// One step as its phases see it.
struct Step {
  const KernelTable* kernels;
  int64_t rows, outputs;
  const int32_t* tokens;
  const int32_t* output_rows;
  const LaybyWish* wishes;  // null: of no row
  StepRows sequence_rows;
  int threads;
  int64_t serial;  // counts steps
  Worker* workers;
};

enum class Extent : int32_t { TOKENS, OUTPUTS };

inline int64_t rows_of(const Step& step, Extent extent) { return extent == Extent::TOKENS ? step.rows : step.outputs; }

class Phase {
 public:
  virtual ~Phase() = default;
  virtual int64_t chunks(const Step& step) const = 0;
  virtual void run(const Step& step, int64_t chunk, int worker) const = 0;
  // Weights that the chunk reads first.
  virtual Ahead ahead(const Step&, int64_t) const { return {}; }
};

// Where an operand lies; its rows are those of the step.
struct OperandPlace {
  OperandKind kind;
  int64_t columns;
  uint8_t* memory;

  Operand with_rows(int64_t rows) const { return at(memory, rows); }
  Operand at(uint8_t* other, int64_t rows) const;
  static size_t bytes(OperandKind kind, int64_t columns, int64_t rows);
};

// What a linear layer reads: an operand that is there, or rows to be prepared. A step of few rows is prepared by
// each thread for itself, which is cheaper than waiting for one another; a larger one in a phase before.
struct Input {
  Extent extent;
  bool is_prepared;
  OperandPlace operand;
  Source source;
  bool gathers;  // source rows are those whose logits are wanted
};

class EmbeddingPhase : public Phase {
 public:
  EmbeddingPhase(const PackedWeight& table, float scale, Rows out) : table_(table), scale_(scale), out_(out) {}
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  PackedWeight table_;
  float scale_;
  Rows out_;
};

// The cosines and sines of each row's position, shared by all layers.
class AnglePhase : public Phase {
 public:
  AnglePhase(std::vector<float> frequencies, float magnitude, int64_t max_rows);
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;
  int64_t rotary_dim() const { return 2 * static_cast<int64_t>(frequencies_.size()); }
  const float* cosines() const { return memory_.as<float>(); }
  const float* sines() const { return memory_.as<float>(memory_.size() / 2); }

 private:
  std::vector<float> frequencies_;
  float magnitude_;
  Memory memory_;
};

class PreparePhase : public Phase {
 public:
  explicit PreparePhase(const Input& input) : input_(input) {}
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  Input input_;
};

// The grid of chunks of a linear layer: stretches of its units of outputs, times blocks of rows.
struct LinearGrid {
  int64_t rows, units, unit_chunks, row_chunks;
  LinearGrid(const Step& step, int64_t rows, int64_t units, int64_t unit_bytes);
  int64_t chunks() const { return unit_chunks * row_chunks; }
  Range unit_range(int64_t chunk) const;
  Range row_range(int64_t chunk) const;
};

// Linear layers of one input, computed together.
class LinearPhase : public Phase {
 public:
  LinearPhase(int64_t id, const Input& input, std::vector<LinearPart> parts);
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;
  Ahead ahead(const Step& step, int64_t chunk) const override;

 private:
  LinearGrid grid(const Step& step) const;
  int64_t id_;
  Input input_;
  std::vector<LinearPart> parts_;
  int64_t groups_, group_bytes_;
};

// activation(gate) * up, both linear layers of one input, in units of 32 outputs.
class GatedLinearPhase : public Phase {
 public:
  GatedLinearPhase(int64_t id, const Input& input, const GatedPart& part, OperandPlace out);
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;
  Ahead ahead(const Step& step, int64_t chunk) const override;

 private:
  LinearGrid grid(const Step& step) const;
  int64_t id_;
  Input input_;
  GatedPart part_;
  OperandPlace out_;  // used where the part has no rows to write
};

class NormPhase : public Phase {
 public:
  NormPhase(Extent extent, const Source& source, Rows out) : extent_(extent), source_(source), out_(out) {}
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  Extent extent_;
  Source source_;
  Rows out_;
};

class GatedPhase : public Phase {
 public:
  GatedPhase(Extent extent, Rows gate, Rows up, Activation activation, Rows out, int64_t columns)
      : extent_(extent), gate_(gate), up_(up), activation_(activation), out_(out), columns_(columns) {}
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  Extent extent_;
  Rows gate_, up_;
  Activation activation_;
  Rows out_;
  int64_t columns_;
};

class TakePhase : public Phase {
 public:
  TakePhase(Rows x, Rows out) : x_(x), out_(out) {}
  int64_t chunks(const Step& step) const override { return step.outputs > 0 ? 1 : 0; }
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  Rows x_, out_;
};

// The likeliest tokens of each row whose logits are wanted, or one drawn from these.
class LikeliestPhase : public Phase {
 public:
  LikeliestPhase(Rows x, int64_t width, const LaybyFound& out) : x_(x), width_(width), out_(out) {}
  int64_t chunks(const Step& step) const override { return step.wishes ? step.outputs : 0; }
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  Rows x_;
  int64_t width_;
  LaybyFound out_;
};

// Streams that do not read one another, row by row.
class HeadsPhase : public Phase {
 public:
  explicit HeadsPhase(std::vector<HeadStream> streams) : streams_(std::move(streams)) {}
  int64_t chunks(const Step& step) const override { return step.rows; }
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  std::vector<HeadStream> streams_;
};

class AttentionPhase : public Phase {
 public:
  AttentionPhase(const Attention& attention, OperandPlace out, AttentionPlan* plan)
      : attention_(attention), out_(out), plan_(plan) {}
  int64_t chunks(const Step& step) const override;
  void run(const Step& step, int64_t chunk, int worker) const override;

 private:
  void join_pieces(const Step& step, int64_t split, int64_t kv_head, float* states) const;
  Attention attention_;
  OperandPlace out_;
  AttentionPlan* plan_;
};

}  // namespace layby
