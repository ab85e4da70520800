// Guest and worker in one process on one mapping, so that ThreadSanitizer sees both. The guest is a guest::Session over
// a handmade region, the worker is host::serve() in a thread. This file plays the broker, its heartbeat, and the
// worker's start.
//
// A process has one session, so each test has one InProcess and runs in its own process, as ctest does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "guest/process/thread.h"
#include "guest/session/session.h"
#include "host/driver/driver.h"
#include "host/session/session.h"
#include "host/untrusted/serve.h"
#include "ring/api/cuda.h"
#include "ring/layout/region_view.h"
#include "ring/view.h"
#include "tests/loopback/fake_module.h"

namespace loopback {

struct InProcessOptions {
  host::ServeOptions serve{.spin_us = 20, .chaos_delay_us = 0, .channels = ring::max_channels, .join_at_end = true};
  std::uint32_t guest_spin_us = 20;
  unsigned host_patience = 600;  // IVGPU_HOST_PATIENCE; small values for a silent host
  std::size_t arena_bytes = std::size_t{96} << 20;
  bool same_kernel = true;                        // false: as in a VM, the guest waits for a doorbell
  bool module = false;                            // with the guest's kernel module
  std::uint32_t guest_vectors = 1;                // the number of interrupts that the broker claims to raise
  void (*before_open)(ring::SlotView) = nullptr;  // changes the worker's data before the guest reads it
};

class InProcess {
 public:
  // Starts the worker, opens the session and makes the first device's primary context current in this thread.
  explicit InProcess(const host::Driver& driver, const InProcessOptions& options = {});
  ~InProcess();
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  bool ok() const { return session_ != nullptr; }
  ring::SlotView slot() const { return slot_; }
  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(base_).header(); }
  ring::Shared<ring::SlotEntry> entry() const { return ring::RegionView(base_).entry(0); }
  // Bit c: channel c has been opened.
  std::uint64_t opened() const { return slot_.header()[&ring::SlotHeader::opened].load(); }

  // Ends serve() if it still runs, waits for its end, and returns the result. The slot is then Dead, as the broker
  // would leave it.
  host::Served end_worker();
  FakeModule* module() const { return module_.get(); }
  bool worker_has_ended() const { return ended_; }
  // Only sets the slot Dead. The worker has then died at an arbitrary point, as the guest sees it.
  void mark_dead();
  // Whether the broker answers doorbells, and how many doorbells it got.
  void broker_answers(bool yes) { answering_ = yes; }
  std::uint32_t asked() const { return asked_; }
  // Makes the whole host answer or fall silent. While it is silent, the worker's doorbell thread gets no doorbells; it
  // gets them later.
  void answer(bool yes);
  // From now on this object answers each doorbell of the worker at once. Call it while the worker ignores doorbells,
  // since otherwise the worker answers itself.
  void answer_for_worker() { answering_for_worker_ = true; }
  // The number of rings of the worker's doorbell.
  std::uint32_t signalled() const { return signalled_; }

 private:
  class Region;
  void fill(const host::Driver& driver, const InProcessOptions& options);
  void ask_broker();
  void ring_worker();

  std::byte* base_ = nullptr;
  std::size_t bytes_;
  ring::SlotView slot_;
  int doorbell_ = -1;
  int control_[2] = {-1, -1};
  std::atomic<bool> answering_{true}, hearing_{true}, ended_{false}, answering_for_worker_{false};
  std::atomic<std::uint32_t> asked_{0}, signalled_{0};
  std::unique_ptr<FakeModule> module_;
  std::thread worker_;
  host::Served served_ = host::Served::Ended;
  std::unique_ptr<guest::Session> session_;
};

// The number of timed sleeps of the threads under a CountedSleeps. in_process.cc replaces libc's nanosleep() for this
// count.
struct TimedSleeps {
  std::atomic<unsigned> count{0};
  std::atomic<std::uint64_t> longest_ns{0};
};
class CountedSleeps {
 public:
  explicit CountedSleeps(TimedSleeps& sleeps);
  ~CountedSleeps();
  CountedSleeps(const CountedSleeps&) = delete;
  CountedSleeps& operator=(const CountedSleeps&) = delete;
};

// Makes the first device's primary context current in the calling thread.
CUresult use_device();

// The driver under test: the fake one or the simulated GPU, chosen at link time.
const host::Driver& backend();

}  // namespace loopback

// The functions behind libcuda.so.1's symbols, by name, without the library. Defined in entry_points.cc, the only file
// that compiles them.
namespace cu {
#define CALL(id, fn, ...) extern decltype(&::fn) const fn;
#define CUSTOM(id, fn, ...) extern decltype(&::fn) const fn;
#define LOCAL(fn, ...) extern decltype(&::fn) const fn;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"

// Calls the _ptsz or _ptds form of a function.
template <class... P, class... A>
CUresult per_thread(CUresult (*function)(P...), A... arguments) {
  guest::this_thread().per_thread = true;
  const CUresult result = function(arguments...);
  guest::this_thread().per_thread = false;
  return result;
}
}  // namespace cu
