// How the keys and values of one head lie in a page of the pool; kernels/kv_layout.py says the same.
//
// A key tile has the positions side by side, so that one load meets many of them: numbers as [head_dim][32 positions],
// bytes as [head_dim / 4][32 positions][4]. A value tile is [32 positions][value_stride]. Behind bytes stand their
// scales, half precision: of each 32 of the head's dimensions, [groups][32 positions].
#pragma once

#include "kernels.h"

namespace layby {
namespace {

constexpr int KV_GROUP = QUANT_BLOCK;  // dimensions of a head that share a scale where keys and values are bytes
constexpr int QUAD = 4;                // dimensions of a key that lie together where they are bytes

inline int64_t kv_groups(int64_t dimensions) { return (dimensions + KV_GROUP - 1) / KV_GROUP; }
inline int64_t key_quads(int64_t head_dim) { return (head_dim + QUAD - 1) / QUAD; }

// Bytes of a tile of so many dimensions before its scales, if any.
inline int64_t number_bytes(const KvLayer& kv, int64_t dimensions) {
  return dimensions * PAGE_TOKENS * (kv.type == KvType::F32 ? 4 : kv.type == KvType::F16 ? 2 : 1);
}
inline int64_t scale_bytes(const KvLayer& kv, int64_t dimensions) {
  return kv.type == KvType::Q8_0 ? kv_groups(dimensions) * PAGE_TOKENS * 2 : 0;
}

// Where the scales of a tile of bytes begin in it.
inline int64_t key_scales_at(const KvLayer& kv) { return number_bytes(kv, key_quads(kv.head_dim) * QUAD); }
inline int64_t value_scales_at(const KvLayer& kv) { return number_bytes(kv, kv.value_stride); }

inline int64_t key_tile_bytes(const KvLayer& kv) {
  if (kv.type != KvType::Q8_0) return number_bytes(kv, kv.head_dim);
  return key_scales_at(kv) + scale_bytes(kv, kv.head_dim);
}
inline int64_t value_tile_bytes(const KvLayer& kv) { return number_bytes(kv, kv.value_stride) + scale_bytes(kv, kv.value_stride); }

}  // namespace
}  // namespace layby
