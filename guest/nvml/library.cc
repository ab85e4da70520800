#include "guest/nvml/library.h"

#include <pthread.h>

#include <cstring>
#include <utility>

// A handle is the address of one of these objects.
struct nvmlDevice_st {
  char unused;
};

namespace guest::nvml {
namespace {

nvmlDevice_st devices[ring::max_devices];

// Returns the result of a call that has no snapshot.
nvmlReturn_t result_of(Answer answer) {
  switch (answer) {
    case Answer::Given: return NVML_SUCCESS;
    case Answer::Late: return NVML_ERROR_TIMEOUT;
    case Answer::NoRegion:
    case Answer::TooOld:
    case Answer::Gone: break;
  }
  return NVML_ERROR_UNKNOWN;
}

Library* make_library() {
  // clang does not check these functions, since fork() calls one function to lock and another to unlock.
  pthread_atfork([]() NO_THREAD_SAFETY_ANALYSIS { library().before_fork(); },
                 []() NO_THREAD_SAFETY_ANALYSIS { library().after_fork_in_parent(); },
                 []() NO_THREAD_SAFETY_ANALYSIS { library().after_fork_in_child(); });
  return new Library([] { return find_region(Doorbells::None); });
}

}  // namespace

Library& library() {
  static Library* const the = make_library();
  return *the;
}

nvmlReturn_t Library::start() {
  const Lock lock(mutex_);
  if (starts_ == 0 && gpus_->open() != Answer::Given) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++starts_;
  return NVML_SUCCESS;
}

nvmlReturn_t Library::end() {
  const Lock lock(mutex_);
  if (starts_ == 0) return NVML_ERROR_UNINITIALIZED;
  if (--starts_ == 0) gpus_->close();
  return NVML_SUCCESS;
}

bool Library::started() {
  const Lock lock(mutex_);
  return starts_ != 0;
}

nvmlReturn_t Library::reach_vm(bool sound, About about) {
  if (starts_ == 0) return NVML_ERROR_UNINITIALIZED;
  if (!sound) return NVML_ERROR_INVALID_ARGUMENT;
  return result_of(gpus_->look(about == About::Memory ? 0 : recent_ns));
}

nvmlReturn_t Library::reach_gpu(nvmlDevice_t device, About about, bool sound, std::uint32_t& index) {
  const nvmlReturn_t reached = reach_vm(sound && device != nullptr, about);
  if (reached != NVML_SUCCESS) return reached;
  const auto found = index_of(device, gpus_->snapshot());
  if (!found) return NVML_ERROR_INVALID_ARGUMENT;
  index = *found;
  const bool there = gpus_->snapshot().gpu[index].state == IVGPU_GPU_THERE;
  return there || about == About::Names ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

void Library::after_fork_in_child() {
  gpus_->forget();
  mutex_.unlock();
}

void Library::replace(Gpus::Find find, Patience patience) {
  const Lock lock(mutex_);
  gpus_ = std::make_unique<Gpus>(std::move(find), patience);
  starts_ = 0;
}

nvmlDevice_t handle_of(std::uint32_t index) { return &devices[index]; }

std::optional<std::uint32_t> index_of(nvmlDevice_t device, const Snapshot& snapshot) {
  for (std::uint32_t i = 0; i < snapshot.vm.gpu_count; ++i)
    if (device == handle_of(i)) return i;
  return std::nullopt;
}

nvmlReturn_t give_text(const char* text, char* to, unsigned room) {
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes == 1) return NVML_ERROR_NOT_SUPPORTED;
  if (bytes > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text, bytes);
  return NVML_SUCCESS;
}

}  // namespace guest::nvml
