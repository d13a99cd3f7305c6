#include "file_block.h"

#include <algorithm>

#include "forms.h"
#include "half.h"

namespace layby {
namespace {

uint16_t read_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

void take_nibbles(const uint8_t* packed, int values, uint8_t* code) {
  for (int i = 0; i < values / 2; ++i) {
    code[i] = packed[i] & 15;
    code[i + values / 2] = packed[i] >> 4;
  }
}

void add_fifth_bits(const uint8_t* packed, uint8_t* code) {
  for (int i = 0; i < QUANT_BLOCK; ++i) code[i] |= (packed[i / 8] >> i % 8 & 1) << 4;
}

// The 6-bit scale and minimum of each group of 32 of Q4_K and Q5_K.
void take_super_scales(const uint8_t* packed, FileBlock* block) {
  for (int g = 0; g < 4; ++g) {
    block->small_scale[g] = packed[g] & 63;
    block->small_minimum[g] = packed[g + 4] & 63;
    block->small_scale[g + 4] = (packed[g + 8] & 15) | packed[g] >> 6 << 4;
    block->small_minimum[g + 4] = packed[g + 8] >> 4 | packed[g + 4] >> 6 << 4;
  }
}

void take_q2k(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file + 80);
  block->minimum = read_u16(file + 82);
  std::copy(file, file + 16, block->small_scale);  // both 4-bit numbers of a group stay in one byte
  for (int i = 0; i < 256; ++i) block->code[i] = file[16 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

void take_q3k(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file + 108);
  const uint8_t* packed = file + 96;
  for (int g = 0; g < 16; ++g) {
    const int bits = (packed[g % 8] >> g / 8 * 4 & 15) | (packed[8 + g % 4] >> g / 4 * 2 & 3) << 4;
    block->small_scale[g] = static_cast<uint8_t>(bits - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int low = file[32 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    block->code[i] = static_cast<uint8_t>(low | (file[i % 32] >> i / 32 & 1) << 2);
  }
}

void take_q4k(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file);
  block->minimum = read_u16(file + 2);
  take_super_scales(file + 4, block);
  for (int i = 0; i < 256; i += 64) take_nibbles(file + 16 + i / 2, 64, block->code + i);
}

void take_q5k(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file);
  block->minimum = read_u16(file + 2);
  take_super_scales(file + 4, block);
  for (int i = 0; i < 256; i += 64) take_nibbles(file + 48 + i / 2, 64, block->code + i);
  for (int i = 0; i < 256; ++i) block->code[i] |= (file[16 + i % 32] >> i / 32 & 1) << 4;
}

void take_q6k(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file + 208);
  std::copy(file + 192, file + 208, block->small_scale);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, byte = i % 32;
    const int low = file[part * 64 + quarter % 2 * 32 + byte] >> quarter / 2 * 4 & 15;
    block->code[i] = static_cast<uint8_t>(low | (file[128 + part * 32 + byte] >> quarter * 2 & 3) << 4);
  }
}

void take_iq4xs(const uint8_t* file, FileBlock* block) {
  block->scale = read_u16(file);
  const uint16_t high = read_u16(file + 2);
  for (int g = 0; g < 8; ++g) {
    const int bits = (file[4 + g / 2] >> g % 2 * 4 & 15) | (high >> 2 * g & 3) << 4;
    block->small_scale[g] = static_cast<uint8_t>(bits - 32);
    take_nibbles(file + 8 + g * 16, QUANT_BLOCK, block->code + g * QUANT_BLOCK);
  }
}

}  // namespace

void take_block(Form form, const uint8_t* file, FileBlock* block) {
  switch (form) {
    case Form::Q4_0:
    case Form::IQ4_NL:
      block->scale = read_u16(file);
      return take_nibbles(file + 2, QUANT_BLOCK, block->code);
    case Form::Q4_1:
      block->scale = read_u16(file);
      block->minimum = read_u16(file + 2);
      return take_nibbles(file + 4, QUANT_BLOCK, block->code);
    case Form::Q5_0:
      block->scale = read_u16(file);
      take_nibbles(file + 6, QUANT_BLOCK, block->code);
      return add_fifth_bits(file + 2, block->code);
    case Form::Q5_1:
      block->scale = read_u16(file);
      block->minimum = read_u16(file + 2);
      take_nibbles(file + 8, QUANT_BLOCK, block->code);
      return add_fifth_bits(file + 4, block->code);
    case Form::Q8_0:
      block->scale = read_u16(file);
      std::copy(file + 2, file + 34, block->code);
      return;
    case Form::MXFP4:
      block->small_scale[0] = file[0];
      return take_nibbles(file + 1, QUANT_BLOCK, block->code);
    case Form::Q2_K: return take_q2k(file, block);
    case Form::Q3_K: return take_q3k(file, block);
    case Form::Q4_K: return take_q4k(file, block);
    case Form::Q5_K: return take_q5k(file, block);
    case Form::Q6_K: return take_q6k(file, block);
    case Form::IQ4_XS: return take_iq4xs(file, block);
    default: return;
  }
}

namespace {

float scaled(Form form, const FileBlock& block, int i) {
  const float scale = half_to_float(block.scale), code = block.code[i];
  switch (form) {
    case Form::Q4_0: return scale * (code - 8);
    case Form::Q5_0: return scale * (code - 16);
    case Form::Q4_1:
    case Form::Q5_1: return scale * code + half_to_float(block.minimum);
    case Form::Q8_0: return scale * static_cast<int8_t>(block.code[i]);
    case Form::Q2_K: {
      const uint8_t both = block.small_scale[i / 16];
      return scale * (both & 15) * code - half_to_float(block.minimum) * (both >> 4);
    }
    case Form::Q3_K: return scale * static_cast<int8_t>(block.small_scale[i / 16]) * (code - 4);
    case Form::Q4_K:
    case Form::Q5_K:
      return scale * block.small_scale[i / 32] * code - half_to_float(block.minimum) * block.small_minimum[i / 32];
    case Form::Q6_K: return scale * static_cast<int8_t>(block.small_scale[i / 16]) * (code - 32);
    case Form::IQ4_NL: return scale * IQ4_LEVELS[block.code[i]];
    case Form::IQ4_XS: return scale * static_cast<int8_t>(block.small_scale[i / 32]) * IQ4_LEVELS[block.code[i]];
    case Form::MXFP4: {
      const uint32_t e = block.small_scale[0];
      return bits_to_float(e < 2 ? 0x00200000u << e : (e - 1) << 23) * E2M1_LEVELS[block.code[i]];
    }
    default: return 0;
  }
}

}  // namespace

void values_of(Form form, const FileBlock& block, float* values) {
  for (int i = 0; i < layout_of(form).values; ++i) values[i] = scaled(form, block, i);
}

}  // namespace layby
