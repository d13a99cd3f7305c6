// How packed weights lie in memory; the one description that packing, unpacking and the kernels share.
//
// Outputs are taken in groups of 16. A group is a row of blocks along the inputs; a block holds a header (scales of
// a super-block), then parts of 32 inputs each: scales of the part, then planes of codes. In a plane the bytes of one
// input vector are ordered [output][4 inputs], so that one load gives 4 consecutive inputs of all 16 outputs, which
// is what one dot-product instruction takes:
//
//   nibbles   256 bytes, vector i: low half inputs 8i..8i+3, high half inputs 8i+4..8i+7
//   pairs     128 bytes, vector v: bits 2j, 2j+1 belong to inputs 16v+4j..16v+4j+3
//   bits       64 bytes: bit j belongs to inputs 4j..4j+3
//   bytes     512 bytes, vector j: inputs 4j..4j+3
//
// No bit of a file is lost. Forms are as large as the file's blocks, save Q4_K (+2.8%), Q5_K (+2.3%), Q3_K (+3.6%)
// and IQ4_XS (+1.5%), whose 6-bit scales take 8 bits here. Source of the file's blocks: ggml-common.h of ggml.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace layby {
namespace {

constexpr int NIBBLE_PLANE = 256, PAIR_PLANE = 128, BIT_PLANE = 64, BYTE_PLANE = 512;  // bytes of a plane
constexpr int HALF_ROW = 32;                                        // bytes of 16 half-precision numbers
constexpr int BYTE_ROW = 16;                                         // bytes of 16 one-byte numbers

struct FormLayout {
  int values;      // inputs of a block
  int file_bytes;  // of one output's block in the file
  int head, part;  // bytes of the header and of a part, for 16 outputs
  constexpr int block_bytes() const { return head + (values < QUANT_BLOCK ? 1 : values / QUANT_BLOCK) * part; }
};

constexpr FormLayout LAYOUTS[] = {
    {1, 4, 0, 64},                                    // F32
    {1, 2, 0, 32},                                    // F16
    {1, 2, 0, 32},                                    // BF16
    {32, 18, 0, HALF_ROW + NIBBLE_PLANE},                    // Q4_0: scale
    {32, 20, 0, 2 * HALF_ROW + NIBBLE_PLANE},                // Q4_1: scale, minimum
    {32, 22, 0, HALF_ROW + NIBBLE_PLANE + BIT_PLANE},             // Q5_0
    {32, 24, 0, 2 * HALF_ROW + NIBBLE_PLANE + BIT_PLANE},         // Q5_1
    {32, 34, 0, HALF_ROW + BYTE_PLANE},                      // Q8_0
    {256, 84, 2 * HALF_ROW, 2 * BYTE_ROW + PAIR_PLANE},         // Q2_K: scale, minimum; 4 bits of each for each 16
    {256, 110, HALF_ROW, 2 * BYTE_ROW + PAIR_PLANE + BIT_PLANE},     // Q3_K: scale; signed scales for each 16
    {256, 144, 2 * HALF_ROW, 2 * BYTE_ROW + NIBBLE_PLANE},      // Q4_K: scale, minimum; scales and minimums
    {256, 176, 2 * HALF_ROW, 2 * BYTE_ROW + NIBBLE_PLANE + BIT_PLANE},  // Q5_K
    {256, 210, HALF_ROW, 2 * BYTE_ROW + NIBBLE_PLANE + PAIR_PLANE},  // Q6_K: scale; signed scales for each 16
    {32, 18, 0, HALF_ROW + NIBBLE_PLANE},                    // IQ4_NL: scale
    {256, 136, HALF_ROW, BYTE_ROW + NIBBLE_PLANE},              // IQ4_XS: scale; signed scales
    {32, 17, 0, BYTE_ROW + NIBBLE_PLANE},                     // MXFP4: exponents
};
static_assert(sizeof(LAYOUTS) / sizeof(LAYOUTS[0]) == static_cast<int>(Form::COUNT), "one layout for each form");

inline const FormLayout& layout_of(Form form) { return LAYOUTS[static_cast<int>(form)]; }

// What the 4-bit codes of IQ4_NL, IQ4_XS and MXFP4 stand for (MXFP4: doubled).
constexpr int8_t IQ4_LEVELS[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t E2M1_LEVELS[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace
}  // namespace layby
