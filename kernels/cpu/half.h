// Half precision in software, for code that runs on any CPU.
#pragma once

#include <cstdint>
#include <cstring>

namespace layby {
namespace {

inline float bits_to_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline uint32_t float_to_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31, rest = half & 0x7fffu;
  if (rest >= 0x7c00) return bits_to_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // 2^-24 times the integer for subnormal numbers, else the exponent moved by 112.
  const float magnitude = rest < 0x400 ? static_cast<float>(rest) * 5.9604644775390625e-8f
                                       : bits_to_float((rest << 13) + (112u << 23));
  return bits_to_float(sign | float_to_bits(magnitude));
}

// Rounds to nearest, ties to even.
inline uint16_t float_to_half(float x) {
  const uint32_t bits = float_to_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and above
  if (rest < 0x38800000) {  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
    return static_cast<uint16_t>(sign | (float_to_bits(bits_to_float(rest) + 0.5f) - 0x3f000000));
  }
  return static_cast<uint16_t>(sign | (rest + 0xfff + (rest >> 13 & 1) - (112u << 23)) >> 13);
}

}  // namespace
}  // namespace layby
