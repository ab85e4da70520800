// The library's state: the count of initialisations, the handles of devices, and the GPUs. Every exported function
// calls a member that takes a getter `get`; the member makes NVML's general checks and runs `get`. Any thread may call
// these members. A getter runs under the mutex and calls no member of this class.
//
// A fork waits for the mutex, at most for the duration of a question. The child keeps the count and opens a region of
// its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "guest/base/uncancelled.h"
#include "guest/nvml/gpus.h"
#include "ring/base/mutex.h"
#include "ring/nvml/facts.h"
#include "ring/nvml/types.h"

// Begins the definition of an exported function.
#define NVML_EXPORT extern "C" __attribute__((visibility("default")))
#define NVML_CALL NVML_EXPORT nvmlReturn_t

namespace guest::nvml {

// One GPU of a snapshot, for a getter.
struct Gpu {
  const Gpus& all;
  std::uint32_t index;

  const ring::VmGpu& reported() const { return all.snapshot().gpu[index]; }
  std::optional<std::uint32_t> knows(ring::Fact fact) const {
    if ((reported().known & ring::bit_of(fact)) == 0) return std::nullopt;
    return reported().fact[ring::number_of(fact)];
  }
};

// The kind of data that a getter reads.
enum class About : std::uint8_t {
  Names,   // data that even a lost GPU has
  State,   // data that may be some milliseconds old
  Memory,  // data that each call fetches, since a program compares the memory before and after an allocation
};

class Library {
 public:
  explicit Library(Gpus::Find find) : gpus_(std::make_unique<Gpus>(std::move(find))) {}

  nvmlReturn_t start();
  nvmlReturn_t end();
  bool started();

  // Calls `get`, a function of a Snapshot, and returns its result, or returns the error that prevented the call.
  // `sound`: whether the caller's arguments are valid.
  template <class Get>
  nvmlReturn_t of_vm(bool sound, Get get) {
    const Lock lock(mutex_);
    const nvmlReturn_t reached = reach_vm(sound, About::State);
    return reached == NVML_SUCCESS ? get(gpus_->snapshot()) : reached;
  }
  // Like the member above, even before the library is initialised: a region is then opened for this call only.
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
  // Calls `get`, a function of a Gpu, for the GPU of a handle.
  template <class Get>
  nvmlReturn_t of_gpu(nvmlDevice_t device, About about, bool sound, Get get) {
    const Lock lock(mutex_);
    std::uint32_t index = 0;
    const nvmlReturn_t reached = reach_gpu(device, about, sound, index);
    return reached == NVML_SUCCESS ? get(Gpu{*gpus_, index}) : reached;
  }

  void before_fork() ACQUIRE(mutex_) { mutex_.lock(); }
  void after_fork_in_parent() RELEASE(mutex_) { mutex_.unlock(); }
  void after_fork_in_child() RELEASE(mutex_);

  // For tests: replaces the GPUs and resets the library to uninitialised.
  void replace(Gpus::Find find, Patience patience);

 private:
  // A monitor reads twenty values, one after another. With this limit, the values come from one moment and cost one
  // question.
  static constexpr std::uint64_t recent_ns = 20'000'000;

  // Disables cancellation, since a thread cancelled inside a call would keep the mutex locked.
  struct SCOPED_CAPABILITY Lock {
    explicit Lock(ring::Mutex& mutex) ACQUIRE(mutex) : guard(mutex) {}
    ~Lock() RELEASE() {}
    const Uncancelled here;
    const ring::MutexLock guard;
  };

  nvmlReturn_t reach_vm(bool sound, About about) REQUIRES(mutex_);
  nvmlReturn_t reach_gpu(nvmlDevice_t device, About about, bool sound, std::uint32_t& index) REQUIRES(mutex_);

  ring::Mutex mutex_;
  std::uint64_t starts_ GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Gpus> gpus_ GUARDED_BY(mutex_);
};

// Returns the process's library, which is never destroyed, since exit handlers of programs call it.
Library& library();

// Returns the handle of a GPU, which stays the same until the process ends. Preconditions: index < ring::max_devices.
nvmlDevice_t handle_of(std::uint32_t index);
// Returns the GPU of a handle, or nothing if the handle is invalid or the VM has no such GPU.
std::optional<std::uint32_t> index_of(nvmlDevice_t device, const Snapshot& snapshot);

// Copies text to the caller. "" means unknown and gives NOT_SUPPORTED. Preconditions: `to` is not null.
nvmlReturn_t give_text(const char* text, char* to, unsigned room);

}  // namespace guest::nvml
