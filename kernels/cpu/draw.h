// One token drawn from the likeliest of a row: top-p, min-p, temperature, and dice that are a function of (seed, position).
#pragma once

#include <cstdint>

#include "layby_cpu.h"
#include "likeliest.h"

namespace layby {

// One number in [0, 1), a multiple of 2^-53.
double uniform(uint64_t seed, uint64_t position);

// The id drawn from the `count` tokens that were found; -1 where there are none, or one of them is padding.
int32_t draw(const LaybyWish& wish, const LikeliestPlaces& found, int32_t count);

}  // namespace layby
