// Weights as files store them to the forms that kernels read, and back.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "memory.h"
#include "team.h"

namespace layby {

// A packed weight and its memory. `file` holds outputs x inputs values, row by row, in the blocks of `form`.
class Weight {
 public:
  // Throws std::bad_alloc. Inputs are whole blocks; outputs are filled up to a multiple of 16 with zeros.
  Weight(Form form, const uint8_t* file, int64_t outputs, int64_t inputs, Team& team);

  const PackedWeight& packed() const { return packed_; }
  size_t bytes() const { return memory_.size(); }

 private:
  Memory memory_;
  PackedWeight packed_;
};

// The `inputs` values of one output, as the file means them.
void unpack_row(const PackedWeight& weight, int64_t output, float* values);

}  // namespace layby
