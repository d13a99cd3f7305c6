#include "pack.h"

#include <algorithm>
#include <cstring>

#include "file_block.h"
#include "forms.h"
#include "half.h"

namespace layby {
namespace {

// What a part or a header holds, in the order in which it stands there (see forms.h).
struct Contents {
  int halves;                        // half-precision numbers: scale, or scale and minimum
  bool halves_in_head;
  int small_scales, small_minimums;  // one-byte numbers of a part
  bool nibbles, pairs, bits, bytes;  // planes of a part
};

constexpr Contents contents_of(Form form) {
  switch (form) {
    case Form::Q4_0:
    case Form::IQ4_NL: return {1, false, 0, 0, true, false, false, false};
    case Form::Q4_1: return {2, false, 0, 0, true, false, false, false};
    case Form::Q5_0: return {1, false, 0, 0, true, false, true, false};
    case Form::Q5_1: return {2, false, 0, 0, true, false, true, false};
    case Form::Q8_0: return {1, false, 0, 0, false, false, false, true};
    case Form::Q2_K: return {2, true, 2, 0, false, true, false, false};
    case Form::Q3_K: return {1, true, 2, 0, false, true, true, false};
    case Form::Q4_K: return {2, true, 1, 1, true, false, false, false};
    case Form::Q5_K: return {2, true, 1, 1, true, false, true, false};
    case Form::Q6_K: return {1, true, 2, 0, true, true, false, false};
    case Form::IQ4_XS: return {1, true, 1, 0, true, false, false, false};
    case Form::MXFP4: return {0, false, 1, 0, true, false, false, false};
    default: return {};
  }
}

// Calls each(byte, shift, mask, k, code_shift) for every field of codes that a part holds of one output.
template <class EachField>
void for_fields(const Contents& has, int64_t at, int output, const EachField& each) {
  const int64_t column = at + output * 4;
  for (int k = 0; k < QUANT_BLOCK; ++k) {
    int64_t plane = column + k % 4;
    if (has.bytes) each(plane + k / 4 * 64, 0, 255, k, 0);
    if (has.nibbles) {
      each(plane + k / 8 * 64, k / 4 % 2 * 4, 15, k, 0);
      plane += NIBBLE_PLANE;
    }
    if (has.pairs) {
      each(plane + k / 16 * 64, k / 4 % 4 * 2, 3, k, has.nibbles ? 4 : 0);
      plane += PAIR_PLANE;
    }
    if (has.bits) each(plane, k / 4, 1, k, has.nibbles ? 4 : 2);
  }
}

// Calls half, scale and minimum of the visitor with a place and an index, and field for each field, in order.
template <class Visitor>
void visit(Form form, int output, Visitor& visitor) {
  const Contents has = contents_of(form);
  const FormLayout& layout = layout_of(form);
  const auto halves = [&](int64_t at) {
    for (int i = 0; i < has.halves; ++i, at += HALF_ROW) visitor.half(at + 2 * output, i);
    return at;
  };
  if (has.halves_in_head) halves(0);
  for (int p = 0; p < layout.values / QUANT_BLOCK; ++p) {
    int64_t at = layout.head + p * layout.part;
    if (!has.halves_in_head) at = halves(at);
    for (int i = 0; i < has.small_scales; ++i, at += BYTE_ROW) visitor.scale(at + output, p * has.small_scales + i);
    for (int i = 0; i < has.small_minimums; ++i, at += BYTE_ROW) visitor.minimum(at + output, p);
    for_fields(has, at, output, [&](int64_t byte, int shift, int mask, int k, int code_shift) {
      visitor.field(byte, shift, mask, p * QUANT_BLOCK + k, code_shift);
    });
  }
}

struct Writer {
  const FileBlock& from;
  uint8_t* to;
  void half(int64_t at, int i) { std::memcpy(to + at, i ? &from.minimum : &from.scale, 2); }
  void scale(int64_t at, int i) { to[at] = from.small_scale[i]; }
  void minimum(int64_t at, int i) { to[at] = from.small_minimum[i]; }
  void field(int64_t at, int shift, int mask, int k, int code_shift) {
    to[at] = static_cast<uint8_t>(to[at] | (from.code[k] >> code_shift & mask) << shift);
  }
};

struct Reader {
  const uint8_t* from;
  FileBlock& to;
  void half(int64_t at, int i) { std::memcpy(i ? &to.minimum : &to.scale, from + at, 2); }
  void scale(int64_t at, int i) { to.small_scale[i] = from[at]; }
  void minimum(int64_t at, int i) { to.small_minimum[i] = from[at]; }
  void field(int64_t at, int shift, int mask, int k, int code_shift) {
    to.code[k] = static_cast<uint8_t>(to.code[k] | (from[at] >> shift & mask) << code_shift);
  }
};

int64_t group_bytes_of(Form form, int64_t inputs) {
  const FormLayout& layout = layout_of(form);
  return (inputs + layout.values - 1) / layout.values * layout.block_bytes();
}

// Bytes of one number of a float form, and where in a group that of an input and an output lies.
int64_t float_bytes(Form form) { return form == Form::F32 ? 4 : 2; }
int64_t float_place(Form form, int64_t input, int64_t lane) {
  const int64_t together = layout_of(form).values;
  return ((input / together * GROUP_OUTPUTS + lane) * together + input % together) * float_bytes(form);
}

void pack_floats(const PackedWeight& weight, const uint8_t* file, int64_t output, uint8_t* group) {
  const int64_t size = float_bytes(weight.form), lane = output % GROUP_OUTPUTS;
  const uint8_t* row = file + output * weight.inputs * size;
  for (int64_t k = 0; k < weight.inputs; ++k)
    std::memcpy(group + float_place(weight.form, k, lane), row + k * size, size);
}

void pack_blocks(const PackedWeight& weight, const uint8_t* file, int64_t output, uint8_t* group) {
  const FormLayout& layout = layout_of(weight.form);
  const int64_t blocks = weight.inputs / layout.values;
  const uint8_t* row = file + output * blocks * layout.file_bytes;
  for (int64_t b = 0; b < blocks; ++b) {
    FileBlock block;
    take_block(weight.form, row + b * layout.file_bytes, &block);
    Writer writer{block, group + b * layout.block_bytes()};
    visit(weight.form, static_cast<int>(output % GROUP_OUTPUTS), writer);
  }
}

class Packing : public Job {
 public:
  Packing(const PackedWeight& weight, const uint8_t* file, uint8_t* data)
      : weight_(weight), file_(file), data_(data), groups_((weight.outputs + GROUP_OUTPUTS - 1) / GROUP_OUTPUTS) {}
  int phases() const override { return 1; }
  int64_t chunks(int) override { return std::min<int64_t>(groups_, 1024); }
  void run(int, int64_t chunk, int) override {
    const int64_t of = chunks(0);
    for (int64_t g = groups_ * chunk / of; g < groups_ * (chunk + 1) / of; ++g) pack_group(g);
  }

 private:
  void pack_group(int64_t g) {
    const int64_t end = std::min(weight_.outputs, (g + 1) * GROUP_OUTPUTS);
    for (int64_t output = g * GROUP_OUTPUTS; output < end; ++output)
      (is_float(weight_.form) ? pack_floats : pack_blocks)(weight_, file_, output, data_ + g * weight_.group_bytes);
  }

  const PackedWeight weight_;
  const uint8_t* file_;
  uint8_t* data_;
  const int64_t groups_;
};

float float_at(Form form, const uint8_t* at) {
  if (form == Form::F32) return bits_to_float(at[0] | at[1] << 8 | at[2] << 16 | uint32_t{at[3]} << 24);
  const uint16_t bits = static_cast<uint16_t>(at[0] | at[1] << 8);
  return form == Form::F16 ? half_to_float(bits) : bits_to_float(uint32_t{bits} << 16);
}

}  // namespace

Weight::Weight(Form form, const uint8_t* file, int64_t outputs, int64_t inputs, Team& team) {
  const int64_t groups = (outputs + GROUP_OUTPUTS - 1) / GROUP_OUTPUTS, size = group_bytes_of(form, inputs);
  memory_ = Memory(static_cast<size_t>(groups * size));
  packed_ = {form, outputs, inputs, size, memory_.as<uint8_t>()};
  Packing packing(packed_, file, memory_.as<uint8_t>());
  team.run(packing);
}

void unpack_row(const PackedWeight& weight, int64_t output, float* values) {
  const FormLayout& layout = layout_of(weight.form);
  const uint8_t* group = weight.data + output / GROUP_OUTPUTS * weight.group_bytes;
  const int lane = static_cast<int>(output % GROUP_OUTPUTS);
  if (is_float(weight.form)) {
    for (int64_t k = 0; k < weight.inputs; ++k)
      values[k] = float_at(weight.form, group + float_place(weight.form, k, lane));
    return;
  }
  for (int64_t b = 0; b * layout.values < weight.inputs; ++b) {
    FileBlock block;
    Reader reader{group + b * layout.block_bytes(), block};
    visit(weight.form, lane, reader);
    values_of(weight.form, block, values + b * layout.values);
  }
}

}  // namespace layby
