#include "team.h"

#include "float_mode.h"
#include "parking.h"

#if defined(__linux__)
#include <pthread.h>
#endif

namespace layby {
namespace {

// A phase of a small model takes some 10 microseconds, a gap between two steps some hundred.
constexpr int PHASE_SPINS = 500;
constexpr int STEP_SPINS = 2000;
constexpr int LINES_A_SPIN = 8;

// A stretch of chunks as one word, so that taking from it needs one comparison: epoch, end, next.
constexpr int NEXT_BITS = 20;
constexpr uint64_t NEXT_MASK = (uint64_t{1} << NEXT_BITS) - 1;
constexpr uint32_t EPOCH_MASK = (uint32_t{1} << (64 - 2 * NEXT_BITS)) - 1;

bool is_busy(uint32_t epoch) { return epoch & 1; }
uint32_t after(uint32_t epoch, bool busy) { return ((epoch >> 1) + 1) << 1 | (busy ? 1 : 0); }

uint64_t stretch(uint32_t epoch, int64_t begin, int64_t end) {
  return uint64_t{epoch & EPOCH_MASK} << 2 * NEXT_BITS | static_cast<uint64_t>(end) << NEXT_BITS |
         static_cast<uint64_t>(begin);
}

}  // namespace

struct alignas(64) Team::Claim {
  std::atomic<uint64_t> stretch{0};
};

Team::Team(int threads) {
  for (int worker = 0; worker < threads; ++worker) claims_.push_back(std::make_unique<Claim>());
  try {
    for (int worker = 1; worker < threads; ++worker) helpers_.emplace_back([this, worker] { helper(worker); });
  } catch (...) {
    stop();  // a thread that is destroyed unjoined ends the process
    throw;
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stopping_.store(true);
  announce(after(epoch_.load(), false));
  for (std::thread& thread : helpers_) thread.join();
}

void Team::run(Job& job) {
  const PlainFloats mode;
  job_ = &job;
  phase_ = -1;
  open_next_phase(0);
  for (uint32_t epoch = epoch_.load(); is_busy(epoch); epoch = epoch_.load(std::memory_order_acquire))
    work(0, epoch, PHASE_SPINS);
}

void Team::helper(int worker) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "layby-kernels");
#endif
  const PlainFloats mode;
  while (!stopping_.load()) {
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    work(worker, epoch, is_busy(epoch) ? PHASE_SPINS : STEP_SPINS);
  }
}

void Team::work(int worker, uint32_t epoch, int spins) {
  const int64_t done = take_chunks(worker, epoch);
  Ahead ahead;
  if (done) {
    ahead = job_->ahead(phase_, worker);  // asked for while the phase cannot end: afterwards the job may be gone
    if (report(worker, done)) return;
  }
  wait_for_change(epoch, spins, ahead);
}

int64_t Team::take_chunks(int worker, uint32_t epoch) {
  int64_t done = 0, chunk = 0;
  for (int i = 0; i < threads(); ++i) {
    const int owner = (worker + i) % threads();
    while (claim(owner, epoch, &chunk)) {
      job_->run(phase_, chunk, worker);
      ++done;
    }
  }
  return done;
}

bool Team::claim(int owner, uint32_t epoch, int64_t* chunk) {
  std::atomic<uint64_t>& word = claims_[owner]->stretch;
  uint64_t now = word.load(std::memory_order_acquire);
  do {
    const uint64_t next = now & NEXT_MASK, end = now >> NEXT_BITS & NEXT_MASK;
    if (now >> 2 * NEXT_BITS != (epoch & EPOCH_MASK) || next >= end) return false;
    *chunk = static_cast<int64_t>(next);
  } while (!word.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

// Whether this was the rest of the phase, and the next is open.
bool Team::report(int worker, int64_t done) {
  // Nobody can be inside the phase any more once all its chunks are reported, so this thread opens the next alone.
  if (left_.fetch_sub(done, std::memory_order_acq_rel) != done) return false;
  open_next_phase(worker);
  return true;
}

void Team::open_next_phase(int worker) {
  int64_t chunks = 0;
  while (chunks == 0 && ++phase_ < job_->phases()) {
    chunks = job_->chunks(phase_);
    if (chunks == 1) {  // not worth a word to the others
      job_->run(phase_, 0, worker);
      chunks = 0;
    }
  }
  const uint32_t epoch = after(epoch_.load(), chunks > 0);
  if (chunks == 0) return announce(epoch);  // the job may be gone as soon as this is seen
  left_.store(chunks, std::memory_order_relaxed);
  const int64_t n = threads();
  for (int64_t owner = 0; owner < n; ++owner)
    claims_[owner]->stretch.store(stretch(epoch, chunks * owner / n, chunks * (owner + 1) / n),
                                  std::memory_order_release);
  announce(epoch);
}

void Team::announce(uint32_t epoch) {
  epoch_.store(epoch);
  if (sleepers_.load() > 0) wake_all(epoch_);
}

void Team::wait_for_change(uint32_t seen, int spins, Ahead ahead) {
  for (int i = 0; i < spins; ++i) {
    if (epoch_.load(std::memory_order_acquire) != seen) return;
    for (int line = 0; line < LINES_A_SPIN && ahead.begin < ahead.end; ++line, ahead.begin += 64) fetch(ahead.begin);
    relax();
  }
  sleepers_.fetch_add(1);
  if (epoch_.load() == seen) sleep_while(epoch_, seen);
  sleepers_.fetch_sub(1);
}

}  // namespace layby
