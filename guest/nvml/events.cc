// Event sets. A guest's GPU has no events, because errors, clocks and power of the host's GPU concern only the
// operator. nvidia-smi creates a set before anything else, and exits if the creation fails.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "guest/nvml/library.h"
#include "ring/base/mutex.h"

struct nvmlEventSet_st {
  char unused;
};
using nvmlEventSet_t = nvmlEventSet_st*;

namespace guest::nvml {
namespace {

// Never destroyed, because the library never is. A set outlives nvmlShutdown, as with NVIDIA's library.
struct Sets {
  ring::Mutex mutex;
  std::vector<std::unique_ptr<nvmlEventSet_st>> all GUARDED_BY(mutex);
};
Sets& sets() {
  static Sets* const the = new Sets;
  return *the;
}

auto find(Sets& among, nvmlEventSet_t set) REQUIRES(among.mutex) {
  return std::find_if(among.all.begin(), among.all.end(), [&](const auto& one) { return one.get() == set; });
}

bool is_set(nvmlEventSet_t set) {
  const ring::MutexLock lock(sets().mutex);
  return find(sets(), set) != sets().all.end();
}

// Sleeps for the whole time, since no event occurs.
nvmlReturn_t wait(nvmlEventSet_t set, const void* data, unsigned milliseconds) {
  if (!library().started()) return NVML_ERROR_UNINITIALIZED;
  if (data == nullptr || !is_set(set)) return NVML_ERROR_INVALID_ARGUMENT;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return NVML_ERROR_TIMEOUT;
}

}  // namespace

NVML_CALL nvmlEventSetCreate(nvmlEventSet_t* to) {
  if (!library().started()) return NVML_ERROR_UNINITIALIZED;
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const ring::MutexLock lock(sets().mutex);
  *to = sets().all.emplace_back(std::make_unique<nvmlEventSet_st>()).get();
  return NVML_SUCCESS;
}

NVML_CALL nvmlEventSetFree(nvmlEventSet_t set) {
  if (!library().started()) return NVML_ERROR_UNINITIALIZED;
  const ring::MutexLock lock(sets().mutex);
  const auto found = find(sets(), set);
  if (found == sets().all.end()) return NVML_ERROR_INVALID_ARGUMENT;
  sets().all.erase(found);
  return NVML_SUCCESS;
}

NVML_CALL nvmlEventSetWait(nvmlEventSet_t set, void* data, unsigned milliseconds) {
  return wait(set, data, milliseconds);
}
NVML_CALL nvmlEventSetWait_v2(nvmlEventSet_t set, void* data, unsigned milliseconds) {
  return wait(set, data, milliseconds);
}

NVML_CALL nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* to) {
  return library().of_gpu(device, About::State, to != nullptr, [&](const Gpu&) {
    *to = 0;
    return NVML_SUCCESS;
  });
}

NVML_CALL nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  return library().of_gpu(device, About::State, is_set(set),
                          [&](const Gpu&) { return types == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED; });
}

}  // namespace guest::nvml
