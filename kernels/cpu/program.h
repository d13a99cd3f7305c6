// A compiled program: buffers, phases, and the step that runs through them. Checks everything that it is given, so
// that no call from outside can reach memory that is not its own.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "layby_cpu.h"
#include "pack.h"
#include "phases.h"
#include "team.h"

namespace layby {

class Program : private Job {
 public:
  // Throws std::invalid_argument, std::bad_alloc; so do all that follow.
  Program(const KernelTable& kernels, int64_t max_rows, int64_t max_outputs);

  void set_pool(uint8_t* pool, int64_t page_bytes, int32_t pages, KvType type);
  int add_buffer(int32_t kind, int64_t width, Extent extent);
  int add_kv_layer(const LaybyKvLayer& layer);
  int add_rotary(std::vector<float> frequencies, float magnitude);
  void add_embedding(const PackedWeight& table, float scale, int32_t out);
  void add_norm(int32_t x, int32_t out, const Norm& norm);
  void add_linear(const LaybyInput& input, const LaybyLinear* parts, int32_t count);
  void add_gated_linear(const LaybyInput& input, const LaybyLinear* parts, Activation activation, int32_t out);
  void add_gated(int32_t gate, int32_t up, Activation activation, int32_t out);
  void add_heads(const LaybyHeads* streams, int32_t count);
  void add_attention(const LaybyAttention& attention);
  void add_take(int32_t x, int32_t out);
  void add_likeliest(int32_t x, const LaybyFound& out);

  Rows rows(int32_t buffer) const;
  void run(Team& team, const LaybyStep& step);

  int64_t phase_count() const { return static_cast<int64_t>(phases_.size()); }
  void measure(bool is_on) { is_measured_ = is_on; }
  std::vector<int64_t> phase_nanoseconds() const;

 private:
  struct Buffer {
    int32_t kind;
    int64_t width;
    Extent extent;
    int64_t stride;
    Memory memory;
  };

  int phases() const override { return static_cast<int>(phases_.size()); }
  int64_t chunks(int phase) override;
  void run(int phase, int64_t chunk, int worker) override { phases_[phase]->run(step_, chunk, worker); }

  Ahead ahead(int phase, int worker) const override;

  const Buffer& buffer(int32_t index, int64_t width = -1) const;
  OperandPlace operand(int32_t index) const;
  Input input(const LaybyInput& from, int64_t inputs, Form form);
  LinearPart part(const LaybyLinear& from, const Input& input, bool has_rows) const;
  const KvLayer& kv_layer(int32_t index) const;
  AttentionPlan* plan_for(const AttentionShape& shape);
  void check_step(const LaybyStep& step) const;
  void check_row(const LaybyStep& step, int32_t row) const;
  void size_workers(int threads);

  const KernelTable& kernels_;
  int64_t max_rows_, max_outputs_;
  KvLayer pool_ = {};
  int32_t pages_ = 0;
  int64_t vocabulary_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<KvLayer> kv_layers_;
  std::vector<const AnglePhase*> rotaries_;
  std::vector<std::unique_ptr<Phase>> phases_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;
  std::vector<Worker> workers_;
  size_t operand_bytes_ = 0, state_floats_ = 0;
  int64_t serial_ = 0;
  Step step_ = {};
  bool is_measured_ = false;
  std::vector<std::chrono::steady_clock::time_point> opened_;
};

}  // namespace layby
