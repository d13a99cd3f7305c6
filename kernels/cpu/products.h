// Integer sums of products of weights' codes with quantised rows: what a tile of rows and vectors of outputs needs of
// one group of inputs.
//
// Compiled for each variant. A sum is exact, so how it is taken apart (rows, vectors, digits) changes no bit of it.
#pragma once

#include "form_codes.h"
#include "kernels.h"
#include "simd/simd.h"

namespace layby {
namespace {

using simd::I;
using simd::SUBS;

// How a kind of codes is multiplied: what is made of a vector of codes, the sum of its products, and that as numbers.
template <Product KIND>
struct Multiply {
  using Given = Codes;
  using Sum = I;
  static Given take(Codes codes) { return codes; }
  static Sum none() { return simd::no_sum(); }
  static Sum add(Sum sum, Given codes, const int32_t* x) { return simd::add_product_6bit(sum, codes, x); }
  static I total(Sum sum) { return sum; }
};

template <>
struct Multiply<Product::SIGNED> {
  using Given = simd::SignedCodes;
  using Sum = I;
  static Given take(Codes codes) { return simd::as_signed(codes); }
  static Sum none() { return simd::no_sum(); }
  static Sum add(Sum sum, Given codes, const int32_t* x) { return simd::add_product_signed(sum, codes, x); }
  static I total(Sum sum) { return sum; }
};

#if defined(LAYBY_SHORT_SUMS)
template <>
struct Multiply<Product::FOUR_BIT> {
  using Given = Codes;
  using Sum = simd::ShortSum;
  static Given take(Codes codes) { return codes; }
  static Sum none() { return simd::no_shorts(); }
  static Sum add(Sum sum, Given codes, const int32_t* x) { return simd::add_product_4bit(sum, codes, x); }
  static I total(Sum sum) { return simd::add_pairs(simd::no_sum(), sum); }
};
#endif

// Where the parts of a tile's groups stand, and which vector of 16 outputs is meant.
struct Parts {
  const uint8_t* const* of_group;
  const uint8_t* of(int vector) const { return of_group[vector / SUBS]; }
};

// What a code stands for is code - OFFSET, where the sum takes that off; a power of two or nothing.
template <class Codec>
constexpr int offset_of() {
  return Codec::KIND == Product::SIGNED ? simd::SIGNED_OFFSET : Codec::OFFSET;
}

constexpr int log2_of(int power) { return power > 1 ? 1 + log2_of(power / 2) : 0; }

// Of M interleaved rows and STRIP vectors of outputs from `first` on, over VECTORS code vectors of a part from FIRST
// on.
// Codes are read once for all rows, a row's digits once for all vectors of outputs.
template <class Codec, int M, int STRIP, int FIRST, int VECTORS, Product KIND = Codec::KIND>
struct Sums {
  static constexpr int WORDS = words_of_block(OperandKind::QUANTIZED);
  using With = Multiply<KIND>;
  static constexpr int DIGITS = 2 * M * STRIP > simd::INTEGER_SUMS ? 1 : 2;  // summed together

  // Where digit `digit` of the rows' values that meet code vector v stands.
  static const int32_t* at(const int32_t* q, int digit, int v) { return q + (digit * DIGIT_WORDS + FIRST + v) * M; }

  static void read(const Parts& parts, int first, int v, Codes (*two)[2]) {
    LAYBY_UNROLL
    for (int s = 0; s < STRIP; ++s) Codec::codes(parts.of(first + s), (FIRST + v) / 2, (first + s) % SUBS, two[s]);
  }

  // The digits' sums are joined at the end.
  static void of_rows(const Parts& parts, int first, const int32_t* q, I (*totals)[STRIP]) {
    for (int m = 0; m < M; ++m)
      for (int s = 0; s < STRIP; ++s) totals[m][s] = simd::no_sum();
    for (int digit = 0; digit < 2; digit += DIGITS) {  // not unrolled, or too much is loaded ahead and spilled
      typename With::Sum sums[DIGITS][M][STRIP];
      for (int d = 0; d < DIGITS; ++d)
        for (int m = 0; m < M; ++m)
          for (int s = 0; s < STRIP; ++s) sums[d][m][s] = With::none();
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; v += 2) {
        Codes two[STRIP][2];
        read(parts, first, v, two);
        LAYBY_UNROLL
        for (int i = 0; i < 2; ++i) {
          typename With::Given codes[STRIP];
          for (int s = 0; s < STRIP; ++s) codes[s] = With::take(two[s][i]);
          LAYBY_UNROLL
          for (int m = 0; m < M; ++m)
            for (int d = 0; d < DIGITS; ++d)
              for (int s = 0; s < STRIP; ++s)
                sums[d][m][s] = With::add(sums[d][m][s], codes[s], at(q, digit + d, v + i) + m);
        }
      }
      for (int d = 0; d < DIGITS; ++d)
        for (int m = 0; m < M; ++m)
          for (int s = 0; s < STRIP; ++s) {
            const I total = With::total(sums[d][m][s]);
            totals[m][s] = digit + d ? simd::add(simd::shift_up<DIGIT_BITS>(totals[m][s]), total) : total;
          }
    }
  }

#if defined(LAYBY_I8MM)
  // M is even.
  static void of_row_pairs(const Parts& parts, int first, const int32_t* q, I (*totals)[STRIP]) {
    simd::PairSum sums[M / 2][STRIP];
    for (int p = 0; p < M / 2; ++p)
      for (int s = 0; s < STRIP; ++s) sums[p][s] = simd::no_pairs();
    LAYBY_UNROLL
    for (int digit = 0; digit < 2; ++digit) {
      for (int p = 0; p < M / 2 && digit; ++p)
        for (int s = 0; s < STRIP; ++s) sums[p][s] = simd::shift_up<DIGIT_BITS>(sums[p][s]);
      LAYBY_UNROLL
      for (int v = 0; v < VECTORS; v += 2) {
        Codes two[STRIP][2];
        read(parts, first, v, two);
        simd::PairCodes both[STRIP];
        for (int s = 0; s < STRIP; ++s) both[s] = simd::pair_codes(two[s]);
        const int32_t *even = at(q, digit, v), *odd = at(q, digit, v + 1);
        LAYBY_UNROLL
        for (int p = 0; p < M / 2; ++p)
          for (int s = 0; s < STRIP; ++s)
            sums[p][s] = simd::add_product_pair(sums[p][s], both[s], even + 2 * p, odd + 2 * p);
      }
    }
    for (int p = 0; p < M / 2; ++p)
      for (int s = 0; s < STRIP; ++s) {
        totals[2 * p][s] = simd::total_first(sums[p][s]);
        totals[2 * p + 1][s] = simd::total_second(sums[p][s]);
      }
  }
#endif

  static void of(const Parts& parts, int first, const int32_t* q, const int32_t* minus_sum, I (*totals)[STRIP]) {
#if defined(LAYBY_I8MM)
    if constexpr (M % 2 == 0)
      of_row_pairs(parts, first, q, totals);
    else
#endif
      of_rows(parts, first, q, totals);
    constexpr int OFFSET = offset_of<Codec>();
    static_assert((OFFSET & (OFFSET - 1)) == 0, "an offset is a shift");
    if constexpr (OFFSET > 0) {
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m) {
        const I off = simd::shift_up<log2_of(OFFSET)>(simd::set1_int(minus_sum[m]));
        for (int s = 0; s < STRIP; ++s) totals[m][s] = simd::add(totals[m][s], off);
      }
    }
  }
};

#if defined(LAYBY_NIBBLE_PAIRS)

// The same for codes and rows' values that share bytes in twos (see Operand).
template <class Codec, int M, int STRIP, int VECTORS>
struct Sums<Codec, M, STRIP, 0, VECTORS, Product::FOUR_BIT> {
  static constexpr int WORDS = words_of_block(OperandKind::PAIRED), BYTES = 3;
  // Sums that do not wait for one another, as many as registers hold.
  static constexpr int MOST = simd::INTEGER_SUMS / (M * STRIP);
  static constexpr int CHAINS = MOST < 1 ? 1 : MOST > BYTES ? BYTES : MOST;

  // What a, c and m of the rows meet: 16 * high, 15 * low, high + low. No byte overflows into the next.
  static void split(Codes both, Codes* of) {
    const Codes low = simd::masked(both, 0x0f);
    of[0] = simd::masked(both, 0xf0);
    of[1] = simd::sub(simd::shift_left<4>(low), low);
    of[2] = simd::add(low, simd::shift_right<4>(of[0]));
  }

  static void of(const Parts& parts, int first, const int32_t* q, const int32_t* minus_sum, I (*totals)[STRIP]) {
    I sums[CHAINS][M][STRIP];
    for (int m = 0; m < M; ++m)
      for (int s = 0; s < STRIP; ++s) {
        constexpr int OFFSET = Codec::OFFSET;
        sums[0][m][s] = OFFSET ? simd::shift_up<log2_of(OFFSET)>(simd::set1_int(minus_sum[m])) : simd::no_sum();
        for (int c = 1; c < CHAINS; ++c) sums[c][m][s] = simd::no_sum();
      }
    LAYBY_UNROLL
    for (int i = 0; i < VECTORS / 2; ++i) {
      Codes codes[STRIP][BYTES];
      for (int s = 0; s < STRIP; ++s)
        split(simd::load_codes(code_vector(Codec::nibbles(parts.of(first + s)), i, (first + s) % SUBS)), codes[s]);
      LAYBY_UNROLL
      for (int m = 0; m < M; ++m)
        for (int b = 0; b < BYTES; ++b)
          for (int s = 0; s < STRIP; ++s)
            sums[b % CHAINS][m][s] =
                simd::add_product_8bit(sums[b % CHAINS][m][s], codes[s][b], q + (b * PAIR_WORDS + i) * M + m);
    }
    for (int m = 0; m < M; ++m)
      for (int s = 0; s < STRIP; ++s) {
        totals[m][s] = sums[0][m][s];
        for (int c = 1; c < CHAINS; ++c) totals[m][s] = simd::add(totals[m][s], sums[c][m][s]);
      }
  }
};

#endif

}  // namespace
}  // namespace layby
