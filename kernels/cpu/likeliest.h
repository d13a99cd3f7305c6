// The likeliest tokens of a row of logits. Only compares, so every machine and every variant finds the same.
#pragma once

#include <cstdint>

namespace layby {

// Where the findings of one row go, each [wanted].
struct LikeliestPlaces {
  int32_t* ids;      // ascending
  double* values;    // of these ids
  int32_t* ranking;  // places in `ids`, the likeliest first
};

// Finds the `wanted` (at least 1) largest of `width` values above -inf, of equals the lower ids; returns how many
// there are. 0 where some value is NaN or +inf, or all are -inf.
int32_t find_likeliest(const float* row, int64_t width, int32_t wanted, const LikeliestPlaces& to);

// Makes -inf of every value of a row but those of allowed ids: a bit for each of the first `count`, the lowest first.
void keep_allowed(float* row, int64_t width, const uint32_t* allowed, int64_t count);

}  // namespace layby
