// The C interface over the classes behind it; turns exceptions into results.
#include <exception>
#include <stdexcept>
#include <string>

#include "layby_cpu.h"
#include "pack.h"
#include "page_copy.h"
#include "program.h"
#include "team.h"
#include "variants.h"

using namespace layby;

namespace {

thread_local std::string last_error;

// Runs what may throw; on failure keeps the message and returns `failed`.
template <class Result, class Body>
Result guarded(Result failed, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    last_error = "not enough memory";
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return failed;
}

Team& of(LaybyTeam* team) { return *reinterpret_cast<Team*>(team); }
Program& of(LaybyProgram* program) { return *reinterpret_cast<Program*>(program); }
const Weight& of(const LaybyWeight* weight) { return *reinterpret_cast<const Weight*>(weight); }

constexpr const char* STORAGES[] = {"F32",  "F16",  "BF16", "Q4_0", "Q4_1", "Q5_0",   "Q5_1",   "Q8_0",
                                    "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"};
static_assert(sizeof(STORAGES) / sizeof(STORAGES[0]) == static_cast<size_t>(Form::COUNT), "one name for each form");

Form form_named(const std::string& storage) {
  for (int i = 0; i < static_cast<int>(Form::COUNT); ++i)
    if (storage == STORAGES[i]) return static_cast<Form>(i);
  throw std::invalid_argument("no kernel reads the storage " + storage);
}

template <class Body>
int32_t done(const Body& body) {
  return guarded(int32_t{-1}, [&] {
    body();
    return int32_t{0};
  });
}

}  // namespace

int32_t layby_abi() { return LAYBY_ABI; }
const char* layby_error() { return last_error.c_str(); }

const char* layby_variant(int32_t index) {
  const KernelTable* variant = variant_at(index);
  return variant ? variant->name : nullptr;
}

int32_t layby_variant_runs_here(const char* name) {
  const KernelTable* variant = variant_named(name);
  return variant && runs_here(*variant) ? 1 : 0;
}

int32_t layby_operand_kind(const char* name, const char* storage) {
  return guarded(int32_t{-1}, [&] {
    const KernelTable* variant = variant_named(name);
    if (!variant) throw std::invalid_argument(std::string("no variant is called ") + name);
    return LAYBY_FLOAT_OPERAND + static_cast<int32_t>(variant->operand_of(form_named(storage)));
  });
}

LaybyTeam* layby_team_new(int32_t threads) {
  return guarded<LaybyTeam*>(nullptr, [&] {
    if (threads < 1) throw std::invalid_argument("a team has at least one thread");
    return reinterpret_cast<LaybyTeam*>(new Team(threads));
  });
}
void layby_team_free(LaybyTeam* team) { delete reinterpret_cast<Team*>(team); }

LaybyWeight* layby_weight_new(const char* storage, const uint8_t* file, int64_t outputs, int64_t inputs,
                              LaybyTeam* team) {
  return guarded<LaybyWeight*>(nullptr, [&] {
    return reinterpret_cast<LaybyWeight*>(new Weight(form_named(storage), file, outputs, inputs, of(team)));
  });
}
int64_t layby_weight_bytes(const LaybyWeight* weight) { return static_cast<int64_t>(of(weight).bytes()); }
int32_t layby_weight_row(const LaybyWeight* weight, int64_t output, float* values) {
  return done([&] {
    const PackedWeight& packed = of(weight).packed();
    if (output < 0 || output >= packed.outputs) throw std::invalid_argument("the weight has no such output");
    unpack_row(packed, output, values);
  });
}
void layby_weight_free(LaybyWeight* weight) { delete reinterpret_cast<Weight*>(weight); }

LaybyProgram* layby_program_new(const char* variant, int32_t max_rows, int32_t max_outputs) {
  return guarded<LaybyProgram*>(nullptr, [&] {
    const KernelTable* kernels = variant_named(variant);
    if (!kernels) throw std::invalid_argument(std::string("no variant is called ") + variant);
    if (!runs_here(*kernels)) throw std::invalid_argument(std::string("this CPU cannot run ") + variant);
    return reinterpret_cast<LaybyProgram*>(new Program(*kernels, max_rows, max_outputs));
  });
}
void layby_program_free(LaybyProgram* program) { delete reinterpret_cast<Program*>(program); }

int32_t layby_program_set_pool(LaybyProgram* program, uint8_t* pool, int64_t page_bytes, int32_t pages,
                               int32_t kv_type) {
  return done([&] {
    if (kv_type < LAYBY_KV_F16 || kv_type > LAYBY_KV_Q8_0) throw std::invalid_argument("no such kind of keys and values");
    of(program).set_pool(pool, page_bytes, pages, static_cast<KvType>(kv_type));
  });
}
int32_t layby_program_add_buffer(LaybyProgram* program, int32_t kind, int64_t width, int32_t extent) {
  return guarded(int32_t{-1}, [&] { return of(program).add_buffer(kind, width, static_cast<Extent>(extent)); });
}
int32_t layby_program_add_kv_layer(LaybyProgram* program, const LaybyKvLayer* layer) {
  return guarded(int32_t{-1}, [&] { return of(program).add_kv_layer(*layer); });
}
int32_t layby_program_add_rotary(LaybyProgram* program, const float* frequencies, int32_t count, float magnitude) {
  return guarded(int32_t{-1}, [&] {
    return of(program).add_rotary(std::vector<float>(frequencies, frequencies + count), magnitude);
  });
}
int32_t layby_program_add_embedding(LaybyProgram* program, const LaybyWeight* table, float scale, int32_t out) {
  return done([&] { of(program).add_embedding(of(table).packed(), scale, out); });
}
int32_t layby_program_add_norm(LaybyProgram* program, int32_t x, int32_t out, const float* weight, float epsilon,
                               int32_t group) {
  return done([&] { of(program).add_norm(x, out, {weight, epsilon, group}); });
}
int32_t layby_program_add_linear(LaybyProgram* program, const LaybyInput* input, const LaybyLinear* parts,
                                 int32_t count) {
  return done([&] { of(program).add_linear(*input, parts, count); });
}
int32_t layby_program_add_gated_linear(LaybyProgram* program, const LaybyInput* input, const LaybyLinear* gate_and_up,
                                       int32_t activation, int32_t out) {
  return done([&] { of(program).add_gated_linear(*input, gate_and_up, static_cast<Activation>(activation), out); });
}
int32_t layby_program_add_gated(LaybyProgram* program, int32_t gate, int32_t up, int32_t activation, int32_t out) {
  return done([&] { of(program).add_gated(gate, up, static_cast<Activation>(activation), out); });
}
int32_t layby_program_add_heads(LaybyProgram* program, const LaybyHeads* streams, int32_t count) {
  return done([&] { of(program).add_heads(streams, count); });
}
int32_t layby_program_add_attention(LaybyProgram* program, const LaybyAttention* attention) {
  return done([&] { of(program).add_attention(*attention); });
}
int32_t layby_program_add_take(LaybyProgram* program, int32_t x, int32_t out) {
  return done([&] { of(program).add_take(x, out); });
}
int32_t layby_program_add_likeliest(LaybyProgram* program, int32_t x, const LaybyFound* out) {
  return done([&] { of(program).add_likeliest(x, *out); });
}

float* layby_program_rows(LaybyProgram* program, int32_t buffer, int64_t* stride) {
  return guarded<float*>(nullptr, [&] {
    const Rows rows = of(program).rows(buffer);
    *stride = rows.stride;
    return rows.data;
  });
}

int32_t layby_program_run(LaybyProgram* program, LaybyTeam* team, const LaybyStep* step) {
  return done([&] { of(program).run(of(team), *step); });
}

void layby_copy_pages(LaybyTeam* team, const uint8_t* from, const int64_t* from_places, uint8_t* to,
                      const int64_t* to_places, int64_t count, int64_t page_bytes) {
  copy_pages(reinterpret_cast<Team*>(team), {from, from_places}, {to, to_places}, {count, page_bytes});
}

int32_t layby_program_phases(const LaybyProgram* program) {
  return static_cast<int32_t>(reinterpret_cast<const Program*>(program)->phase_count());
}
int32_t layby_program_profile(LaybyProgram* program, int32_t is_on, int64_t* nanoseconds) {
  return done([&] {
    of(program).measure(is_on != 0);
    int64_t* to = nanoseconds;
    for (const int64_t time : of(program).phase_nanoseconds()) *to++ = time;
  });
}
