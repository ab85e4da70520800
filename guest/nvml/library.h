// The library's state: how often it was initialised, the handles of devices, and the GPUs. Every exported function goes
// through one of the members that take a `get` and run it, once what NVML checks first was checked. Any thread may call
// it; a `get` runs under the mutex and calls nothing here.
//
// A fork waits for the mutex, so at most for as long as a question does. The child keeps the count of initialisations
// and opens a region of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "guest/nvml/gpus.h"
#include "guest/uncancelled.h"
#include "ring/nvml/facts.h"
#include "ring/nvml/types.h"

// The head of an exported function.
#define NVML_EXPORT extern "C" __attribute__((visibility("default")))
#define NVML_CALL NVML_EXPORT nvmlReturn_t

namespace guest::nvml {

// One GPU of a snapshot, for a getter.
struct Gpu {
  const Gpus& all;
  std::uint32_t index;

  const ring::VmGpu& told() const { return all.snapshot().gpu[index]; }
  std::optional<std::uint32_t> knows(ring::Fact fact) const {
    if ((told().known & ring::bit_of(fact)) == 0) return std::nullopt;
    return told().fact[ring::number_of(fact)];
  }
};

// What a getter is about.
enum class About : std::uint8_t {
  Names,   // a GPU that is lost has them, too
  State,   // what may be some milliseconds old
  Memory,  // what is asked anew for each call: a program compares it before and after
};

class Library {
 public:
  explicit Library(Gpus::Find find) : gpus_(std::make_unique<Gpus>(std::move(find))) {}

  nvmlReturn_t start();
  nvmlReturn_t end();
  bool started();

  // `sound`: whether the arguments are. The result is what `get`, a function of a Snapshot, returns, or why it was not
  // called.
  template <class Get>
  nvmlReturn_t of_vm(bool sound, Get get) {
    const Lock lock(mutex_);
    const nvmlReturn_t reached = reach_vm(sound, About::State);
    return reached == NVML_SUCCESS ? get(gpus_->snapshot()) : reached;
  }
  // The same before the library is initialised, too: the region is opened for this one call then.
  template <class Get>
  nvmlReturn_t of_vm_at_any_time(bool sound, Get get) {
    const Lock lock(mutex_);
    if (!sound) return NVML_ERROR_INVALID_ARGUMENT;
    const bool for_this_call = starts_ == 0;
    const Answer answer = for_this_call ? gpus_->open() : gpus_->look(recent_ns);
    const nvmlReturn_t result = answer == Answer::Given ? get(gpus_->snapshot()) : NVML_ERROR_UNKNOWN;
    if (for_this_call) gpus_->close();
    return result;
  }
  // `get`: a function of a Gpu.
  template <class Get>
  nvmlReturn_t of_gpu(nvmlDevice_t device, About about, bool sound, Get get) {
    const Lock lock(mutex_);
    std::uint32_t index = 0;
    const nvmlReturn_t reached = reach_gpu(device, about, sound, index);
    return reached == NVML_SUCCESS ? get(Gpu{*gpus_, index}) : reached;
  }

  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

  // For tests: from now on the GPUs are these, and the library is not initialised.
  void replace(Gpus::Find find, Patience patience);

 private:
  // A monitor asks for twenty values in a row, which then are of one moment and cost one question.
  static constexpr std::uint64_t recent_ns = 20'000'000;

  // A thread that was cancelled in a call would keep the mutex.
  struct Lock {
    explicit Lock(std::mutex& mutex) : guard(mutex) {}
    const Uncancelled here;
    const std::lock_guard<std::mutex> guard;
  };

  nvmlReturn_t reach_vm(bool sound, About about);
  nvmlReturn_t reach_gpu(nvmlDevice_t device, About about, bool sound, std::uint32_t& index);

  std::mutex mutex_;
  std::uint64_t starts_ = 0;
  std::unique_ptr<Gpus> gpus_;
};

// The process's. It is never destroyed, since programs call it from their exit handlers.
Library& library();

// A device's handle means the same as long as the process lives.
// Preconditions: index < ring::max_devices.
nvmlDevice_t handle_of(std::uint32_t index);
// The GPU of a handle. Nothing: it is no handle, or the VM has no such GPU.
std::optional<std::uint32_t> index_of(nvmlDevice_t device, const Snapshot& snapshot);

// Gives out text that may be unknown, "".
// Preconditions: to is not null.
nvmlReturn_t give_text(const char* text, char* to, unsigned room);

}  // namespace guest::nvml
