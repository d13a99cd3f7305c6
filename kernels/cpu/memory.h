// Zeroed memory for weights, rows and pages: aligned to cache lines, on huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace layby {

// Owns its bytes; moving hands them over. Reading a few bytes past the end is safe (vectors, prefetches).
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes);  // throws std::bad_alloc
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* as(size_t byte_offset = 0) const { return reinterpret_cast<T*>(data_ + byte_offset); }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace layby
