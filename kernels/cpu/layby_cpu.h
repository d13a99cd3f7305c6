// The C interface of the native kernels; kernels/cpu/library.py declares the same for ctypes.
//
// A program is built once: buffers, then phases in the order in which they run, each reading and writing buffers by
// index. `layby_program_run` then computes one step. Functions that can fail return a negative number or a null
// pointer, and `layby_error` says why (of the calling thread's latest failure). Nothing here is called by two threads
// at once for the same object, and a team serves one run at a time.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define LAYBY_API __declspec(dllexport)
#else
#define LAYBY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { LAYBY_ABI = 8 };
// Kinds of buffers, what their number of rows follows, and no such buffer.
enum {
  LAYBY_ROWS = 0,
  LAYBY_FLOAT_OPERAND = 1,
  LAYBY_QUANTIZED_OPERAND = 2,
  LAYBY_BFLOAT_OPERAND = 3,
  LAYBY_PAIRED_OPERAND = 4,
};
enum { LAYBY_TOKENS = 0, LAYBY_OUTPUTS = 1 };
enum { LAYBY_NONE = -1 };
// How keys and values are stored: numbers, or bytes with a half-precision scale for each 32 dimensions of a head.
enum { LAYBY_KV_F16 = 0, LAYBY_KV_F32 = 1, LAYBY_KV_Q8_0 = 2 };

typedef struct LaybyTeam LaybyTeam;
typedef struct LaybyWeight LaybyWeight;
typedef struct LaybyProgram LaybyProgram;

// What a linear layer reads: a buffer of rows, normalised first where norm_weight is set and then put into `operand`;
// or an operand that an earlier phase has written (operand = LAYBY_NONE).
typedef struct {
  int32_t buffer, operand;
  int32_t gathers;  // 1: the rows whose logits are wanted, of a buffer of all tokens
  float epsilon;
  const float* norm_weight;
} LaybyInput;

typedef struct {
  const LaybyWeight* weight;
  const float* bias;  // null: none; read up to a multiple of 16
  int32_t residual, out;
} LaybyLinear;

enum { LAYBY_TO_ROWS = 0, LAYBY_TO_KEYS = 1, LAYBY_TO_VALUES = 2 };

typedef struct {
  int32_t x, out;  // out: only LAYBY_TO_ROWS
  int32_t heads, head_dim;
  const float* norm_weight;  // null: no norm
  float epsilon;
  int32_t rotary;  // index from layby_program_add_rotary
  int32_t sink;
  int32_t layer;  // index from layby_program_add_kv_layer
} LaybyHeads;

typedef struct {
  int64_t key_offset, value_offset;  // bytes in a page
  int32_t kv_heads, head_dim, value_stride;
} LaybyKvLayer;

typedef struct {
  int32_t query, out;
  int32_t heads, layer;
  float scale;
  int32_t window;
} LaybyAttention;

enum { LAYBY_MOST_LIKELIEST = 256 };

// What is wanted of an output row: some of its likeliest tokens, or one drawn from these.
typedef struct {
  int32_t count;       // likeliest tokens, 0 to LAYBY_MOST_LIKELIEST
  int32_t is_drawn;    // 1: one of them is drawn
  int32_t vocabulary;  // ids from here on are padding: where one is among the likeliest, none is drawn
  double temperature;  // 0: the likeliest of all is taken
  double top_p, min_p;
  uint64_t seed, position;
  const uint32_t* allowed;  // a bit for each id of the vocabulary, from the lowest on: tokens that may come; null: all
} LaybyWish;

typedef struct {
  int32_t rows, outputs, sequences, table_stride;
  const int32_t* tokens;
  const int32_t* positions;
  const int32_t* row_sequences;
  const int32_t* page_tables;  // [sequences, table_stride]
  const int32_t* output_rows;
  const LaybyWish* wishes;  // [outputs]; null: nothing is wanted of any
} LaybyStep;

// Where what is wanted of output rows is put, LAYBY_MOST_LIKELIEST places a row for the likeliest.
typedef struct {
  int32_t* counts;   // [outputs]: how many were found; 0: none were wanted, or the row has values that are no numbers
  int32_t* drawn;    // [outputs]: the id that was drawn; -1: none
  int32_t* ids;      // ascending
  double* values;    // the logits of these ids
  int32_t* ranking;  // places in `ids`, the likeliest first, of equals the lower id
} LaybyFound;

LAYBY_API int32_t layby_abi(void);
LAYBY_API const char* layby_error(void);

// Names of the variants that this library holds, best first, null at the end; and whether this CPU can run one.
LAYBY_API const char* layby_variant(int32_t index);
LAYBY_API int32_t layby_variant_runs_here(const char* name);
// The kind of operand that a variant multiplies weights of a storage with.
LAYBY_API int32_t layby_operand_kind(const char* variant, const char* storage);

LAYBY_API LaybyTeam* layby_team_new(int32_t threads);
LAYBY_API void layby_team_free(LaybyTeam* team);

// `storage` is a name such as "Q4_1"; `file` holds the tensor as the file does and is not kept.
LAYBY_API LaybyWeight* layby_weight_new(const char* storage, const uint8_t* file, int64_t outputs, int64_t inputs,
                                        LaybyTeam* team);
LAYBY_API int64_t layby_weight_bytes(const LaybyWeight* weight);
LAYBY_API int32_t layby_weight_row(const LaybyWeight* weight, int64_t output, float* values);
LAYBY_API void layby_weight_free(LaybyWeight* weight);

LAYBY_API LaybyProgram* layby_program_new(const char* variant, int32_t max_rows, int32_t max_outputs);
LAYBY_API void layby_program_free(LaybyProgram* program);
LAYBY_API int32_t layby_program_set_pool(LaybyProgram* program, uint8_t* pool, int64_t page_bytes, int32_t pages,
                                         int32_t kv_type);
LAYBY_API int32_t layby_program_add_buffer(LaybyProgram* program, int32_t kind, int64_t width, int32_t extent);
LAYBY_API int32_t layby_program_add_kv_layer(LaybyProgram* program, const LaybyKvLayer* layer);
LAYBY_API int32_t layby_program_add_rotary(LaybyProgram* program, const float* frequencies, int32_t count,
                                           float magnitude);
LAYBY_API int32_t layby_program_add_embedding(LaybyProgram* program, const LaybyWeight* table, float scale,
                                              int32_t out);
LAYBY_API int32_t layby_program_add_norm(LaybyProgram* program, int32_t x, int32_t out, const float* weight,
                                         float epsilon, int32_t group);
LAYBY_API int32_t layby_program_add_linear(LaybyProgram* program, const LaybyInput* input, const LaybyLinear* parts,
                                           int32_t count);
LAYBY_API int32_t layby_program_add_gated_linear(LaybyProgram* program, const LaybyInput* input,
                                                 const LaybyLinear* gate_and_up, int32_t activation, int32_t out);
LAYBY_API int32_t layby_program_add_gated(LaybyProgram* program, int32_t gate, int32_t up, int32_t activation,
                                          int32_t out);
LAYBY_API int32_t layby_program_add_heads(LaybyProgram* program, const LaybyHeads* streams, int32_t count);
LAYBY_API int32_t layby_program_add_attention(LaybyProgram* program, const LaybyAttention* attention);
LAYBY_API int32_t layby_program_add_take(LaybyProgram* program, int32_t x, int32_t out);
LAYBY_API int32_t layby_program_add_likeliest(LaybyProgram* program, int32_t x, const LaybyFound* out);

// The rows of a buffer and how many floats lie between them; valid as long as the program.
LAYBY_API float* layby_program_rows(LaybyProgram* program, int32_t buffer, int64_t* stride);

LAYBY_API int32_t layby_program_run(LaybyProgram* program, LaybyTeam* team, const LaybyStep* step);

// Copies `count` pages of `page_bytes` from one place to another: the i-th of `from` lies at from_places[i] pages from
// its beginning, or where the list is null at i; `to` likewise. The places are not checked. The team may be null: then
// the caller copies alone.
LAYBY_API void layby_copy_pages(LaybyTeam* team, const uint8_t* from, const int64_t* from_places, uint8_t* to,
                                const int64_t* to_places, int64_t count, int64_t page_bytes);

// Nanoseconds of each phase in the latest run; returns how many phases there are. For measuring.
LAYBY_API int32_t layby_program_phases(const LaybyProgram* program);
LAYBY_API int32_t layby_program_profile(LaybyProgram* program, int32_t is_on, int64_t* nanoseconds);

#ifdef __cplusplus
}
#endif
