// The names that one variant's files share. LAYBY_VARIANT is set by the build, one namespace for each variant.
#pragma once

#include "kernels.h"

#define LAYBY_STRING_OF(name) #name
#define LAYBY_STRING(name) LAYBY_STRING_OF(name)
#define LAYBY_VARIANT_NAME LAYBY_STRING(LAYBY_VARIANT)

namespace layby {
namespace LAYBY_VARIANT {

OperandKind operand_of(Form form);
void prepare(const Source&, const Operand& out, Range rows);
void normalize(const Source&, const Rows& out, Range rows);
void gated(const Rows& gate, const Rows& up, Activation, const Sink& out, Range rows, int64_t columns);
void heads(const HeadStream&, const StepRows&, Range rows);
void linear(const LinearPart&, const Operand& x, Range groups, Range rows);
void gated_linear(const GatedPart&, const Operand& x, Range blocks, Range rows);
void attend(const Attention&, const StepRows&, const AttentionTile&, Range pieces, const NextPiece& next,
            float* states);
void join(float* state, const float* piece, int64_t value_stride);
void finish(const Attention&, int64_t row, int64_t head, float* state);

extern const KernelTable TABLE;

}  // namespace LAYBY_VARIANT
}  // namespace layby
