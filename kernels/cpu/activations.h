// Gate functions, lane by lane. Compiled for each variant.
#pragma once

#include "kernels.h"
#include "simd/simd.h"

namespace layby {
namespace {

inline simd::F sigmoid_times(simd::F x, simd::F inner) {
  return simd::div(x, simd::add(simd::set1(1.0f), simd::exp(simd::sub(simd::zero(), inner))));
}

inline simd::F activate(Activation activation, simd::F x) {
  if (activation == Activation::SILU) return sigmoid_times(x, x);
  // 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
  const simd::F cube = simd::mul(simd::mul(x, x), x);
  const simd::F u = simd::fma(simd::set1(0.044715f), cube, x);
  return sigmoid_times(x, simd::mul(simd::set1(1.59576912f), u));
}

}  // namespace
}  // namespace layby
