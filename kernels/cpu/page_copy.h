// Copies whole pages of a pool to where they lie side by side, or back: parks by copy, and their restores.
#pragma once

#include <cstdint>

#include "team.h"

namespace layby {

// Pages in one stretch of memory: the i-th lies at place places[i], or i where there is no list.
template <class Byte>
struct Pages {
  Byte* memory;
  const int64_t* places;
};

struct PageCount {
  int64_t pages, page_bytes;
};

// Copies each page of `from` to its place in `to`; they do not overlap. Without a team the caller copies alone.
void copy_pages(Team* team, const Pages<const uint8_t>& from, const Pages<uint8_t>& to, PageCount count);

}  // namespace layby
