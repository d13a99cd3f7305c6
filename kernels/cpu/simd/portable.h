// The vector layer in plain C++, for any CPU: 4 lanes, which compilers turn into what the CPU has. See simd.h.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "half.h"

namespace layby {
namespace {
namespace simd {

constexpr int LANES = 4;
constexpr int TILE_GROUPS = 1;
constexpr int PRODUCT_VECTORS = 1;
constexpr int FLOAT_VECTORS = 1;
constexpr int QUANTIZED_TILE_ROWS = 8;
constexpr int INTEGER_SUMS = 8;
constexpr int ATTENTION_QUERIES = 3;
constexpr int REGISTERS = 16;

struct F {
  float v[LANES];
};
struct I {
  int32_t v[LANES];
};
struct Codes {
  uint8_t v[4 * LANES];
};

template <class Result, class Lane>
inline Result each(const Lane& lane) {
  Result result;
  for (int i = 0; i < LANES; ++i) result.v[i] = lane(i);
  return result;
}
template <class Byte>
inline Codes each_byte(const Byte& byte) {
  Codes result;
  for (int i = 0; i < 4 * LANES; ++i) result.v[i] = static_cast<uint8_t>(byte(i));
  return result;
}

inline F set1(float x) { return {{x, x, x, x}}; }
inline F zero() { return set1(0.0f); }
inline F load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline void store(float* p, F x) { std::memcpy(p, x.v, sizeof x.v); }
inline F add(F a, F b) { return each<F>([&](int i) { return a.v[i] + b.v[i]; }); }
inline F sub(F a, F b) { return each<F>([&](int i) { return a.v[i] - b.v[i]; }); }
inline F mul(F a, F b) { return each<F>([&](int i) { return a.v[i] * b.v[i]; }); }
inline F div(F a, F b) { return each<F>([&](int i) { return a.v[i] / b.v[i]; }); }
inline F max(F a, F b) { return each<F>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
inline F min(F a, F b) { return each<F>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; }); }
inline F abs(F a) { return each<F>([&](int i) { return fabsf(a.v[i]); }); }
inline F fma(F a, F b, F c) { return each<F>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; }); }
inline bool any_nan(F a, F b) {
  bool found = false;
  for (int i = 0; i < LANES; ++i) found = found || a.v[i] != a.v[i] || b.v[i] != b.v[i];
  return found;
}
inline float sum_of_lanes(F x) { return (x.v[0] + x.v[2]) + (x.v[1] + x.v[3]); }
inline float max_of_lanes(F x) {
  float most = x.v[0];
  for (int i = 1; i < LANES; ++i) most = x.v[i] > most ? x.v[i] : most;
  return most;
}

// Nearest, ties to even: beyond 2^23 a float has no fraction left. What no integer can hold becomes the least one.
inline int32_t nearest(float x) {
  if (!(x > -2147483648.0f && x < 2147483648.0f)) return INT32_MIN;
  const float magic = x < 0 ? -8388608.0f : 8388608.0f;
  if (x >= 8388608.0f || x <= -8388608.0f) return static_cast<int32_t>(x);
  const volatile float moved = x + magic;
  return static_cast<int32_t>(moved - magic);
}
inline I to_int(F x) { return each<I>([&](int i) { return nearest(x.v[i]); }); }
inline F to_float(I x) { return each<F>([&](int i) { return static_cast<float>(x.v[i]); }); }
inline I set1_int(int32_t x) { return {{x, x, x, x}}; }
inline I add(I a, I b) { return each<I>([&](int i) { return a.v[i] + b.v[i]; }); }
inline I sub(I a, I b) { return each<I>([&](int i) { return a.v[i] - b.v[i]; }); }
template <int BITS>
inline I shift_up(I x) { return each<I>([&](int i) { return x.v[i] * (1 << BITS); }); }
template <int BITS>
inline I shift_down(I x) { return each<I>([&](int i) { return x.v[i] >> BITS; }); }
inline int32_t sum_of_lanes(I x) { return x.v[0] + x.v[1] + x.v[2] + x.v[3]; }
inline F whole(F x) { return to_float(to_int(x)); }
inline F times_power(F x, F n) {
  return each<F>([&](int i) {
    return x.v[i] * bits_to_float((static_cast<uint32_t>(static_cast<int32_t>(n.v[i])) + 127) << 23);
  });
}
inline void store_bytes(int8_t* p, I x) {
  for (int i = 0; i < LANES; ++i) p[i] = static_cast<int8_t>(x.v[i] < -128 ? -128 : x.v[i]);
}

inline F load_half(const uint16_t* p) { return each<F>([&](int i) { return half_to_float(p[i]); }); }
inline uint16_t to_half(float x) { return float_to_half(x); }
inline F load_unsigned_bytes(const uint8_t* p) { return each<F>([&](int i) { return static_cast<float>(p[i]); }); }
inline F load_signed_bytes(const uint8_t* p) {
  return each<F>([&](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
}
inline F load_low_nibbles(const uint8_t* p) { return each<F>([&](int i) { return static_cast<float>(p[i] & 15); }); }
inline F load_high_nibbles(const uint8_t* p) { return each<F>([&](int i) { return static_cast<float>(p[i] >> 4); }); }
inline F load_exponents(const uint8_t* p) {
  return each<F>([&](int i) {
    return bits_to_float(p[i] < 2 ? 0x00200000u << p[i] : static_cast<uint32_t>(p[i] - 1) << 23);
  });
}

inline F bfloats(Codes pairs, int at) {
  return each<F>([&](int i) {
    return bits_to_float(static_cast<uint32_t>(pairs.v[4 * i + at] << 16) | uint32_t{pairs.v[4 * i + at + 1]} << 24);
  });
}
inline F low_bfloat(Codes pairs) { return bfloats(pairs, 0); }
inline F high_bfloat(Codes pairs) { return bfloats(pairs, 2); }

inline Codes load_codes(const uint8_t* p) { return each_byte([&](int i) { return p[i]; }); }
inline Codes either(Codes a, Codes b) { return each_byte([&](int i) { return a.v[i] | b.v[i]; }); }
inline Codes masked(Codes a, uint8_t mask) { return each_byte([&](int i) { return a.v[i] & mask; }); }
template <int BITS>
inline Codes shift_right(Codes a) { return each_byte([&](int i) { return a.v[i] >> BITS; }); }
template <int BITS>
inline Codes shift_left(Codes a) { return each_byte([&](int i) { return a.v[i] << BITS; }); }
inline Codes lookup(const uint8_t* table, Codes a) { return each_byte([&](int i) { return table[a.v[i]]; }); }

template <class Byte>
inline I add_products(I sum, Codes codes, const int32_t* x) {
  int8_t factors[4];
  std::memcpy(factors, x, sizeof factors);
  return each<I>([&](int i) {
    int32_t total = sum.v[i];
    for (int k = 0; k < 4; ++k) total += static_cast<Byte>(codes.v[4 * i + k]) * factors[k];
    return total;
  });
}

inline I no_sum() { return {{0, 0, 0, 0}}; }
inline I add_product_6bit(I sum, Codes codes, const int32_t* x) { return add_products<uint8_t>(sum, codes, x); }

using SignedCodes = Codes;
inline SignedCodes as_signed(Codes codes) { return codes; }
constexpr int SIGNED_OFFSET = 0;
inline I add_product_signed(I sum, SignedCodes codes, const int32_t* x) { return add_products<int8_t>(sum, codes, x); }

inline void prefetch(const void*) {}

}  // namespace simd
}  // namespace
}  // namespace layby
