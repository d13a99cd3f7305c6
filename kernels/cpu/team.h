// The team of threads that runs a step: the caller and its helpers.
//
// A job is a row of phases; a phase is a number of chunks that may run in any order on any thread. Each thread starts
// on its own stretch of the chunks and takes from the others' when it is done, so a thread that the system has put
// aside holds up nothing but the chunk it is in. A phase ends when its chunks are done, not when every thread has
// arrived. Who runs a chunk never changes what it computes.
//
// Between phases threads spin for some microseconds, then sleep in the kernel; an idle team uses no processor time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace layby {

// Memory that will be read soon.
struct Ahead {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
};

class Job {
 public:
  virtual ~Job() = default;
  virtual int phases() const = 0;
  virtual int64_t chunks(int phase) = 0;  // called by one thread, after the phases before are done; may be 0
  virtual void run(int phase, int64_t chunk, int worker) = 0;
  // What a thread that has nothing left to do in a phase may fetch while it waits for the others.
  virtual Ahead ahead(int, int) const { return {}; }
};

class Team {
 public:
  explicit Team(int threads);  // the caller of run() counts as one; throws std::system_error
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return static_cast<int>(claims_.size()); }
  // Runs all phases and returns; at most 2^20 - 1 chunks a phase. One caller at a time.
  void run(Job& job);

 private:
  struct Claim;
  void stop();
  void helper(int worker);
  void work(int worker, uint32_t epoch, int spins);
  int64_t take_chunks(int worker, uint32_t epoch);
  bool claim(int owner, uint32_t epoch, int64_t* chunk);
  bool report(int worker, int64_t done);
  void open_next_phase(int worker);
  void wait_for_change(uint32_t seen, int spins, Ahead ahead);
  void announce(uint32_t epoch);

  std::vector<std::unique_ptr<Claim>> claims_;
  std::vector<std::thread> helpers_;
  Job* job_ = nullptr;
  int phase_ = 0;
  alignas(64) std::atomic<int64_t> left_{0};      // chunks of the phase not reported done
  alignas(64) std::atomic<uint32_t> epoch_{0};    // moves on when a phase opens and when a job ends; odd: in a job
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace layby
