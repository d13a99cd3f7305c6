// One block of a quantised weight, taken apart: what stands between the file's layout and the packed one.
//
// Source of the layouts: the dequantize_row functions of ggml-quants.c (ggml); the tests compare with the gguf package.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace layby {

// Codes are as stored (the offset of Q4_0 and the like not yet taken off), in the order of the values.
struct FileBlock {
  uint16_t scale = 0, minimum = 0;  // half precision
  uint8_t small_scale[16] = {};     // of each group; Q2_K: with the minimum in the high half; MXFP4: the exponent
  uint8_t small_minimum[8] = {};
  uint8_t code[256] = {};
};

// Takes a block of a quantised form from a file's bytes.
void take_block(Form form, const uint8_t* file, FileBlock* block);

// The values that a block means.
void values_of(Form form, const FileBlock& block, float* values);

}  // namespace layby
