// The broker's data about the VM's GPUs, without a session: the region's header area, the question, and a copy of the
// answer (ring/layout/vm_page_c.h). This class knows nothing of NVML. guest/nvml/library.h calls the class under the
// library's mutex.
//
// Invariant: a snapshot is one answer of the broker. All text in it ends with a NUL, and its counts are in range.
// Trust: the broker writes the header area and, without the kernel module, so can every program of the VM. Wrong data
// can only make calls wait in vain or return wrong values.
//
// Edges:
//   A  the guest sees `answered` reach the question before it reads the answer.
//   E  `sequence` is even before the copy and has the same value after the copy, so no write happened during the copy.
//      The broker's release stores and fence are in host/broker/region/region.cc.
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
  ring::VmGpu gpu[ring::max_devices];  // the first vm.gpu_count elements are valid
  std::uint64_t taken_ns;
};

// A process of the VM that has memory on a GPU.
struct Holder {
  std::uint32_t pid;
  std::uint64_t bytes;
};

// The outcome of a question.
enum class Answer : std::uint8_t {
  Given,
  NoRegion,  // there is no region, or the region does not fit this library; the log says why
  TooOld,    // the broker or the guest's kernel module is too old to answer; the log says which
  Late,      // no answer arrived in time, for this question or a recent one
  Gone,      // the broker has ended
};

// How long to wait for an answer. The first answer may take long, because the host's driver wakes unused GPUs.
struct Patience {
  std::uint64_t first_ns = 20'000'000'000, later_ns = 5'000'000'000;
  // After a late answer, calls fail at once for this long.
  std::uint64_t pause_ns = 1'000'000'000;
};

class Gpus {
 public:
  using Find = std::function<std::unique_ptr<Region>()>;

  explicit Gpus(Find find, Patience patience = {});
  ~Gpus() { close(); }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  // Finds the region and takes a first snapshot. If the result is not Given, the region is closed again.
  Answer open() { return connect(patience_.first_ns); }
  void close();
  // Called in a forked child, which may not use the parent's connection. The child's next look() opens a region.
  void forget();

  // Takes a new snapshot if the last snapshot is `max_age_ns` old or older. If the broker has ended, looks once for
  // another region. If the result is not Given, snapshot() is invalid.
  Answer look(std::uint64_t max_age_ns);
  const Snapshot& snapshot() const { return snapshot_; }

  // Returns the number of processes that have memory on a GPU, and lists these processes. Lists only processes of this
  // process's pid namespace, since this process may know no others. Preconditions: there is a snapshot, and gpu < its
  // gpu_count.
  std::uint32_t holders(std::uint32_t gpu, Holder (&to)[ring::max_slots]) const;

 private:
  Answer connect(std::uint64_t patience_ns);
  Answer map_header_area();
  Answer ask(std::uint64_t patience_ns);
  bool copy(std::uint32_t question);
  bool is_there() const;
  Answer too_old(const char* sentence);
  void log_once(Answer why, const char* sentence);
  bool is_ours(const ring::SlotOwner& owner) const;

  const Find find_;
  const Patience patience_;
  std::unique_ptr<Region> region_;
  ring::RegionView header_area_;  // the region's first header_area_bytes; base() is null while nothing is mapped
  std::uint32_t slot_count_ = 0;
  ring::SlotOwner self_{};
  std::uint64_t late_until_ns_ = 0;
  unsigned logged_ = 0;  // bit k: the log already has the line for Answer k
  Snapshot snapshot_{};
};

}  // namespace guest::nvml
