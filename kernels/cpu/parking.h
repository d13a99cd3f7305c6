// Sleeping until a 32-bit word changes, and waking those who sleep on it.
#pragma once

#include <atomic>
#include <cstdint>

namespace layby {

// Returns when the word is no longer `seen`, or earlier.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen);
void wake_all(std::atomic<uint32_t>& word);

// A hint that this thread is in a short loop of waiting.
void relax();

// Asks for the cache line at `address`, which need not exist.
void fetch(const uint8_t* address);

}  // namespace layby
