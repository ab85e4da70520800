// What the broker tells of the VM's GPUs without a session: the region's front, the question, and the copy of the
// answer (ring/layout/vm_page_c.h). It knows nothing of NVML. guest/nvml/library.h calls it, under its mutex.
//
// Invariant: a snapshot is one answer of the broker. All text in it ends with a NUL, and its counts are in range.
// Trust: the broker writes the front and, without the kernel module, so can every program of the VM. A wrong one makes
// calls wait in vain or report nonsense, and nothing else.
//
// Edges:
//   A  `answered` that has come so far, before the look at what was answered.
//   E  an even `sequence` before the copy, and the same one after it: nobody wrote in between. The broker's release
//      stores and its fence are in host/broker/region/region.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "guest/region/region.h"
#include "ring/layout/layout.h"
#include "ring/layout/region_view.h"

namespace guest::nvml {

struct Snapshot {
  ring::VmPage vm;
  ring::VmGpu gpu[ring::max_devices];  // the first vm.gpu_count are told
  std::uint64_t taken_ns;
};

// A process of the VM that has memory on a GPU.
struct Holder {
  std::uint32_t pid;
  std::uint64_t bytes;
};

// What came of a question.
enum class Answer : std::uint8_t {
  Given,
  NoRegion,  // there is none, or it does not fit this library; the log says why
  TooOld,    // the broker or the guest's kernel module has no such questions; the log says which
  Late,      // no answer came in time, lately or now
  Gone,      // the broker has ended
};

// How long to wait for an answer. The first may take long: the host's driver wakes GPUs that nobody uses.
struct Patience {
  std::uint64_t first_ns = 20'000'000'000, later_ns = 5'000'000'000;
  // After one that did not come, calls fail at once for so long.
  std::uint64_t pause_ns = 1'000'000'000;
};

class Gpus {
 public:
  using Find = std::function<std::unique_ptr<Region>()>;

  explicit Gpus(Find find, Patience patience = {});
  ~Gpus() { close(); }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  // Finds the region and takes a first snapshot. If the result is not Given, no region is held.
  Answer open() { return connect(patience_.first_ns); }
  void close();
  // Call it in a forked child: the parent's connection is none of the child's. The next look() opens a region.
  void forget();

  // Takes a new snapshot if the last one is `max_age_ns` old or older. If the broker has ended, another region is
  // looked for, once. If the result is not Given, snapshot() is not to be looked at.
  Answer look(std::uint64_t max_age_ns);
  const Snapshot& snapshot() const { return snapshot_; }

  // The processes that hold memory on a GPU, as far as this process may know them: those of its own pid namespace.
  // Returns how many there are.
  // Preconditions: there is a snapshot, and gpu < its gpu_count.
  std::uint32_t holders(std::uint32_t gpu, Holder (&to)[ring::max_slots]) const;

 private:
  Answer connect(std::uint64_t patience_ns);
  Answer map_front();
  Answer ask(std::uint64_t patience_ns);
  bool copy(std::uint32_t question);
  bool is_there() const;
  Answer too_old(const char* sentence);
  void tell_once(Answer why, const char* sentence);
  bool is_ours(const ring::SlotOwner& owner) const;

  const Find find_;
  const Patience patience_;
  std::unique_ptr<Region> region_;
  ring::RegionView front_;  // front_bytes of it; base() is null while nothing is mapped
  std::uint32_t slot_count_ = 0;
  ring::SlotOwner self_{};
  std::uint64_t late_until_ns_ = 0;
  unsigned told_ = 0;  // bit k: the log has the sentence for Answer k
  Snapshot snapshot_{};
};

}  // namespace guest::nvml
