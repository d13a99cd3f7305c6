// How a kernel reads each packed form: two vectors of codes at a time, and the scale and minimum of a group.
//
// Compiled for each variant. A form has VALUES inputs a block, GROUP inputs a scale, a KIND of product, and
//   codes(part, i, sub, two)   vectors 2i and 2i + 1 of a part's 8, for lanes [sub * LANES, + LANES)
//   scale(block, part, half, sub), minimum(...)   what one code step stands for, and what is added to it
// where `block` is the block and `part` the start of the part within it. value = scale * (code - OFFSET) + minimum;
// without MINIMUM there is none. FOUR_BIT forms say where their nibbles start: vector 2i in the low ones, 2i + 1 in the
// high ones.
#pragma once

#include "forms.h"
#include "simd/simd.h"

namespace layby {
namespace {

using simd::Codes;
using simd::F;
using simd::LANES;

enum class Product { FOUR_BIT, SIX_BIT, SIGNED };

constexpr int CODE_VECTOR = 64;  // bytes: 4 inputs of 16 outputs

inline const uint8_t* code_vector(const uint8_t* plane, int vector, int sub) {
  return plane + vector * CODE_VECTOR + sub * LANES * 4;
}

inline F half_row(const uint8_t* row, int sub) { return simd::load_half((const uint16_t*)row + sub * LANES); }

inline void read_nibbles(const uint8_t* plane, int i, int sub, Codes* two) {
  const Codes both = simd::load_codes(code_vector(plane, i, sub));
  two[0] = simd::masked(both, 15);
  two[1] = simd::masked(simd::shift_right<4>(both), 15);
}

// Moves 2-bit fields 2i and 2i + 1 of a pair plane to bits 4 and 5 and joins them to the codes.
inline void join_pairs(const uint8_t* plane, int i, int sub, Codes* two) {
  const Codes all = simd::load_codes(code_vector(plane, i / 2, sub));
  const Codes fields = i % 2 ? simd::shift_right<4>(all) : all;
  two[0] = simd::either(two[0], simd::masked(simd::shift_left<4>(fields), 0x30));
  two[1] = simd::either(two[1], simd::masked(simd::shift_left<2>(fields), 0x30));
}

inline void read_pairs(const uint8_t* plane, int i, int sub, Codes* two) {
  const Codes all = simd::load_codes(code_vector(plane, i / 2, sub));
  const Codes fields = i % 2 ? simd::shift_right<4>(all) : all;
  two[0] = simd::masked(fields, 3);
  two[1] = simd::masked(simd::shift_right<2>(fields), 3);
}

// Moves bits 2i and 2i + 1 of a bit plane to bit AT and joins them to the codes.
template <int AT>
inline void join_bits(const uint8_t* plane, int i, int sub, Codes* two) {
  const Codes all = simd::load_codes(code_vector(plane, 0, sub));
  const Codes low_bits = i == 0 ? all : i == 1 ? simd::shift_right<2>(all) : i == 2 ? simd::shift_right<4>(all)
                                                                                   : simd::shift_right<6>(all);
  two[0] = simd::either(two[0], simd::masked(simd::shift_left<AT>(low_bits), 1 << AT));
  two[1] = simd::either(two[1], simd::masked(simd::shift_left<AT - 1>(low_bits), 1 << AT));
}

// Forms of 32 inputs with a half-precision scale; ZERO is the code that stands for zero.
template <int ZERO, bool FIFTH_BIT>
struct OffsetForm {
  static constexpr int GROUP = 32, OFFSET = ZERO;
  static constexpr bool MINIMUM = false;
  static constexpr Product KIND = FIFTH_BIT ? Product::SIX_BIT : Product::FOUR_BIT;
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_nibbles(nibbles(part), i, sub, two);
    if (FIFTH_BIT) join_bits<4>(nibbles(part) + NIBBLE_PLANE, i, sub, two);
  }
  static const uint8_t* nibbles(const uint8_t* part) { return part + HALF_ROW; }
  static F scale(const uint8_t*, const uint8_t* part, int, int sub) { return half_row(part, sub); }
};

// Forms of 32 inputs with a half-precision scale and minimum.
template <bool FIFTH_BIT>
struct MinimumForm {
  static constexpr int GROUP = 32, OFFSET = 0;
  static constexpr bool MINIMUM = true;
  static constexpr Product KIND = FIFTH_BIT ? Product::SIX_BIT : Product::FOUR_BIT;
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_nibbles(nibbles(part), i, sub, two);
    if (FIFTH_BIT) join_bits<4>(nibbles(part) + NIBBLE_PLANE, i, sub, two);
  }
  static const uint8_t* nibbles(const uint8_t* part) { return part + 2 * HALF_ROW; }
  static F scale(const uint8_t*, const uint8_t* part, int, int sub) { return half_row(part, sub); }
  static F minimum(const uint8_t*, const uint8_t* part, int, int sub) { return half_row(part + HALF_ROW, sub); }
};

// Super-blocks of 256 inputs in groups of 32 with small scales and minimums.
template <bool FIFTH_BIT>
struct SuperMinimumForm {
  static constexpr int GROUP = 32, OFFSET = 0;
  static constexpr bool MINIMUM = true;
  static constexpr Product KIND = FIFTH_BIT ? Product::SIX_BIT : Product::FOUR_BIT;
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_nibbles(nibbles(part), i, sub, two);
    if (FIFTH_BIT) join_bits<4>(nibbles(part) + NIBBLE_PLANE, i, sub, two);
  }
  static const uint8_t* nibbles(const uint8_t* part) { return part + 2 * BYTE_ROW; }
  static F scale(const uint8_t* block, const uint8_t* part, int, int sub) {
    return simd::mul(half_row(block, sub), simd::load_unsigned_bytes(part + sub * LANES));
  }
  static F minimum(const uint8_t* block, const uint8_t* part, int, int sub) {
    const F small = simd::load_unsigned_bytes(part + BYTE_ROW + sub * LANES);
    return simd::mul(half_row(block + HALF_ROW, sub), simd::sub(simd::zero(), small));
  }
};

// Super-blocks in groups of 16 with signed small scales; ZERO is the code that stands for zero.
template <int ZERO>
struct SuperOffsetForm {
  static constexpr int GROUP = 16, OFFSET = ZERO;
  static constexpr bool MINIMUM = false;
  static constexpr Product KIND = Product::SIX_BIT;
  static F scale(const uint8_t* block, const uint8_t* part, int half, int sub) {
    return simd::mul(half_row(block, sub), simd::load_signed_bytes(part + half * BYTE_ROW + sub * LANES));
  }
};

struct FormQ3K : SuperOffsetForm<4> {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_pairs(part + 2 * BYTE_ROW, i, sub, two);
    join_bits<2>(part + 2 * BYTE_ROW + PAIR_PLANE, i, sub, two);
  }
};

struct FormQ6K : SuperOffsetForm<32> {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_nibbles(part + 2 * BYTE_ROW, i, sub, two);
    join_pairs(part + 2 * BYTE_ROW + NIBBLE_PLANE, i, sub, two);
  }
};

struct FormQ2K {
  static constexpr int GROUP = 16, OFFSET = 0;
  static constexpr bool MINIMUM = true;
  static constexpr Product KIND = Product::SIX_BIT;
  static void codes(const uint8_t* part, int i, int sub, Codes* two) { read_pairs(part + 2 * BYTE_ROW, i, sub, two); }
  static F scale(const uint8_t* block, const uint8_t* part, int half, int sub) {
    return simd::mul(half_row(block, sub), simd::load_low_nibbles(part + half * BYTE_ROW + sub * LANES));
  }
  static F minimum(const uint8_t* block, const uint8_t* part, int half, int sub) {
    const F small = simd::load_high_nibbles(part + half * BYTE_ROW + sub * LANES);
    return simd::mul(half_row(block + HALF_ROW, sub), simd::sub(simd::zero(), small));
  }
};

struct SignedForm {
  static constexpr int GROUP = 32, OFFSET = 0;
  static constexpr bool MINIMUM = false;
  static constexpr Product KIND = Product::SIGNED;
};

struct FormQ80 : SignedForm {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    two[0] = simd::load_codes(code_vector(part + HALF_ROW, 2 * i, sub));
    two[1] = simd::load_codes(code_vector(part + HALF_ROW, 2 * i + 1, sub));
  }
  static F scale(const uint8_t*, const uint8_t* part, int, int sub) { return half_row(part, sub); }
};

// Codes that are looked up: HEAD bytes of scales come before the nibbles.
template <int HEAD>
inline void read_levels(const int8_t* levels, const uint8_t* part, int i, int sub, Codes* two) {
  read_nibbles(part + HEAD, i, sub, two);
  two[0] = simd::lookup((const uint8_t*)levels, two[0]);
  two[1] = simd::lookup((const uint8_t*)levels, two[1]);
}

struct FormIQ4NL : SignedForm {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_levels<HALF_ROW>(IQ4_LEVELS, part, i, sub, two);
  }
  static F scale(const uint8_t*, const uint8_t* part, int, int sub) { return half_row(part, sub); }
};

struct FormIQ4XS : SignedForm {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_levels<BYTE_ROW>(IQ4_LEVELS, part, i, sub, two);
  }
  static F scale(const uint8_t* block, const uint8_t* part, int, int sub) {
    return simd::mul(half_row(block, sub), simd::load_signed_bytes(part + sub * LANES));
  }
};

struct FormMXFP4 : SignedForm {
  static void codes(const uint8_t* part, int i, int sub, Codes* two) {
    read_levels<BYTE_ROW>(E2M1_LEVELS, part, i, sub, two);
  }
  static F scale(const uint8_t*, const uint8_t* part, int, int sub) {
    return simd::load_exponents(part + sub * LANES);
  }
};

}  // namespace
}  // namespace layby
