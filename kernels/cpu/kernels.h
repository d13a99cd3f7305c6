// What the common code and the kernels of each variant share: plain structs and one table of functions.
//
// Common code (program, phases, packing) is compiled once for the oldest CPU; the kernels (variant_*.cpp) once for
// each instruction set. Views point into memory that the program owns; a kernel never allocates.
#pragma once

#include <cstdint>

namespace layby {

constexpr int GROUP_OUTPUTS = 16;  // outputs of a linear layer that are interleaved
constexpr int TILE_ROWS = 8;       // rows that share a load of weights, at most
constexpr int QUANT_BLOCK = 32;    // activations that share a scale
constexpr int DIGIT_BITS = 7;      // of the low digit of a quantised activation
constexpr int LARGEST_CODE = 127 << DIGIT_BITS;
constexpr int LARGEST_PAIRED_CODE = 1799;  // whose three bytes for two codes all fit
constexpr int PAGE_TOKENS = 32;    // positions in a page of the pool
constexpr int MAX_HEAD_DIM = 512;
constexpr int MAX_TILE_QUERIES = 64;  // queries of an attention tile: its rows times the heads that share a key head
constexpr int PIECE_TOKENS = 256;  // positions that attention reduces before joining them to what went before

// How a weight lies in memory: groups of 16 outputs, block after block along the inputs. Described in forms.h.
enum class Form : int32_t {
  F32, F16, BF16,
  Q4_0, Q4_1, Q5_0, Q5_1, Q8_0,
  Q2_K, Q3_K, Q4_K, Q5_K, Q6_K,
  IQ4_NL, IQ4_XS, MXFP4,
  COUNT,
};

inline bool is_float(Form form) { return form <= Form::BF16; }

// What weights are multiplied with: float rows, rows quantised by blocks, pairs of bfloat16 where an instruction takes
// them, or quantised values that share bytes in twos, for weights whose codes of 4 bits do too.
enum class OperandKind : int32_t { FLOAT, QUANTIZED, BFLOAT, PAIRED };

inline bool is_quantized(OperandKind kind) { return kind == OperandKind::QUANTIZED || kind == OperandKind::PAIRED; }

// 32-bit words that hold the codes of a block of a quantised row.
constexpr int DIGIT_WORDS = QUANT_BLOCK / 4;   // one byte of each value
constexpr int PAIR_WORDS = QUANT_BLOCK / 2 / 4;  // one byte of each two values
constexpr int words_of_block(OperandKind kind) {
  return kind == OperandKind::PAIRED ? 3 * PAIR_WORDS : 2 * DIGIT_WORDS;
}

enum class Activation : int32_t { SILU, GELU_TANH };

struct Range {
  int64_t begin, end;
};

struct PackedWeight {
  Form form;
  int64_t outputs, inputs;
  int64_t group_bytes;
  const uint8_t* data;
};

// Float rows [rows, width]. The stride is a multiple of 16 and what lies behind the width is zero.
struct Rows {
  float* data;
  int64_t stride;
  float* row(int64_t r) const { return data + r * stride; }
};

// Rows prepared to be multiplied: tiles of a few rows, interleaved, so that what one weight meets lies together.
// In a tile of n rows that starts at row t, value k of row t + i is x[t * columns + k * n + i]. Pairs lie likewise,
// 2 values a word (an odd last one with zero), and so do the numbers of a block of 32. A quantised value is a code of
// two digits, 128 * high + low, with high in [-127, 127] and low in [-64, 63], each a byte: instructions take bytes,
// and one byte alone would cost logits some percent. Of a block b, the 8 words of high digits, then the 8 of low ones
// are q[(t * columns / 32 + b * n) * 16 + word * n + i].
// Paired: inputs 8j + l and 8j + 4 + l, l < 4, whose weights' codes share a byte, have codes 15c + m and 16a + m, at
// most 1799 in magnitude, where a, c and m each fit a byte. Three products of bytes instead of four multiply both
// exactly: (16a + m) high + (15c + m) low = a (16 high) + c (15 low) + m (high + low), where what the weights become
// fits an unsigned byte too. Of a block, 4 words of a, 4 of c and 4 of m, 12 in all, lie as those 16.
// A row's numbers depend on that row alone; only their places depend on the rows beside it.
struct Operand {
  OperandKind kind;
  int64_t rows, columns;
  float* x;                // FLOAT
  uint32_t* pairs;         // BFLOAT
  int32_t* q;              // QUANTIZED and PAIRED, and all that follow: codes, round(value / scale)
  float* scale;            // largest magnitude of the block / the largest code
  float* sum;              // scale * sum of codes, for weights with a minimum
  int32_t* minus_sum;      // - sum of codes, for weights whose codes stand for less by a constant
  int32_t* minus_halves;   // the same for each half of a block: [block][half][row]
};

// Where a kernel leaves finished rows: as floats, or prepared for the next product.
struct Sink {
  Rows rows;        // used if rows.data is set
  Operand operand;  // else this
};

// out = x · weightᵀ + bias + residual, in this order; bias and residual may be absent.
struct LinearPart {
  PackedWeight weight;
  const float* bias;
  Rows residual;
  Rows out;
};

struct GatedPart {
  LinearPart gate, up;  // without residual or out
  Activation activation;
  Sink out;
};

// Root mean square norm of each `group` values of a row; weight absent: no norm.
struct Norm {
  const float* weight;
  float epsilon;
  int64_t group;
};

struct Source {
  Rows rows;
  const int32_t* index;  // row r is rows.row(index[r]); absent: rows.row(r)
  Norm norm;             // over whole rows
  int64_t columns;
  const float* row(int64_t r) const { return rows.row(index ? index[r] : r); }
};

// Q8_0: bytes, and a scale for each 32 dimensions of a head.
enum class KvType : int32_t { F16, F32, Q8_0 };

// One layer's part of the pool; kv_tiles.h says what lies there.
struct KvLayer {
  uint8_t* pool;
  int64_t page_bytes;
  int64_t key_offset, value_offset;  // bytes from the start of a page
  KvType type;
  int32_t kv_heads, head_dim, value_stride;
};

struct StepRows {
  const int32_t* positions;
  const int32_t* sequences;
  const int32_t* page_tables;  // [sequences, table_stride]
  int64_t table_stride;
  const int32_t* pages(int64_t row) const { return page_tables + sequences[row] * table_stride; }
};

enum class HeadSink : int32_t { ROWS, KEY, VALUE };

// Heads of a row, one by one: norm, then rotation by the row's angles, then to rows or into the pool; all optional.
struct HeadStream {
  Rows x, out;
  int64_t heads, head_dim;
  Norm norm;
  const float* cosines;  // [rows, rotary_dim / 2]; absent: no rotation
  const float* sines;
  int64_t rotary_dim;
  HeadSink sink;
  KvLayer kv;
};

struct Attention {
  Rows query;
  Sink out;
  KvLayer kv;
  int64_t heads;
  float scale;
  int64_t window;  // 0: none
};

// Rows of one sequence that stand together, for one key head.
struct AttentionTile {
  int64_t row;
  int64_t rows;
  int64_t kv_head;
};

// A piece of a row's sequence for one key head that is likely to be attended to next; row -1: none.
struct NextPiece {
  int64_t row, kv_head, piece;
};

// What a query has gathered so far: the largest score, the sum of weights, and the weighted values.
struct AttentionState {
  static constexpr int64_t HEADER = 16;  // floats
  static int64_t floats(int64_t value_stride) { return HEADER + value_stride; }
};

struct KernelTable {
  const char* name;
  OperandKind (*operand_of)(Form);  // what weights of a form are multiplied with
  void (*prepare)(const Source&, const Operand& out, Range rows);
  void (*normalize)(const Source&, const Rows& out, Range rows);
  void (*linear)(const LinearPart&, const Operand& x, Range groups, Range rows);
  void (*gated_linear)(const GatedPart&, const Operand& x, Range blocks, Range rows);
  void (*gated)(const Rows& gate, const Rows& up, Activation, const Sink& out, Range rows, int64_t columns);
  void (*heads)(const HeadStream&, const StepRows&, Range rows);
  // Joins pieces [pieces.begin, pieces.end) of a tile's queries to their states, in order. A state starts as zeros;
  // `next` is what this thread is likely to do afterwards.
  void (*attend)(const Attention&, const StepRows&, const AttentionTile&, Range pieces, const NextPiece& next,
                 float* states);
  // Joins one query's state of a piece to what it has gathered from the pieces before.
  void (*join)(float* state, const float* piece, int64_t value_stride);
  void (*finish)(const Attention&, int64_t row, int64_t head, float* state);
};

}  // namespace layby
