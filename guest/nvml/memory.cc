// A GPU's memory, and the processes that use the memory. Each call fetches new data.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "guest/nvml/library.h"
#include "ring/abi/descriptor.h"

namespace guest::nvml {
namespace {

// Fills one version of a process's entry. Only a GPU with MIG has instances.
void set(nvmlProcessInfo_v1_t& to, const Holder& holder) { to = {holder.pid, holder.bytes}; }
void set(nvmlProcessInfo_t& to, const Holder& holder) {
  to = {holder.pid, holder.bytes, nvml_no_instance, nvml_no_instance};
}

// `room`: the list's capacity on entry, the number of entries on return.
template <class Info>
nvmlReturn_t give_list(const Holder* holders, unsigned count, unsigned& room, Info* to) {
  const bool fits = count <= room;
  if (fits && count != 0 && to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  room = count;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < count; ++i) set(to[i], holders[i]);
  return NVML_SUCCESS;
}

// Each session counts as a compute process.
template <class Info>
nvmlReturn_t computing(nvmlDevice_t device, unsigned* room, Info* to) {
  return library().of_gpu(device, About::Memory, room != nullptr, [&](const Gpu& gpu) {
    Holder holders[ring::max_slots];
    const unsigned count = gpu.all.holders(gpu.index, holders);
    return give_list(holders, count, *room, to);
  });
}

// Returns an empty list: no session draws, and the guest does not see MPS processes.
template <class Info>
nvmlReturn_t nobody(nvmlDevice_t device, unsigned* room, Info* to) {
  return library().of_gpu(device, About::Memory, room != nullptr,
                          [&](const Gpu&) { return give_list(nullptr, 0, *room, to); });
}

// Reads a file's text up to the first NUL or newline into `to`. Returns false if there is no such file.
bool read_first(const char* path, char* to, std::size_t room) {
  const int fd = cuabi::open_file(path, O_RDONLY);
  if (fd < 0) return false;
  const ssize_t n = read(fd, to, room - 1);
  close(fd);
  to[std::max<ssize_t>(n, 0)] = '\0';
  for (char* at = to; *at != '\0'; ++at)
    if (*at == '\n') *at = '\0';
  return true;
}

}  // namespace

// NVML counts all memory that is not free as `used`, reserved memory included.
NVML_CALL nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* to) {
  return library().of_gpu(device, About::Memory, to != nullptr, [&](const Gpu& gpu) {
    const ring::VmGpu& reported = gpu.reported();
    *to = {reported.memory_total, reported.memory_free,
           reported.memory_total - std::min(reported.memory_total, reported.memory_free)};
    return NVML_SUCCESS;
  });
}

NVML_CALL nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* to) {
  return library().of_gpu(device, About::Memory, to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (to->version != nvml_version<nvmlMemory_v2_t>(2)) return NVML_ERROR_FUNCTION_NOT_FOUND;
    const ring::VmGpu& reported = gpu.reported();
    const std::uint64_t usable = reported.memory_total - std::min(reported.memory_total, reported.memory_reserved);
    *to = {to->version, reported.memory_total, reported.memory_reserved, reported.memory_free,
           usable - std::min(usable, reported.memory_free)};
    return NVML_SUCCESS;
  });
}

#define LIST(function, list, Info) \
  NVML_CALL function(nvmlDevice_t device, unsigned* room, Info* to) { return list(device, room, to); }
LIST(nvmlDeviceGetComputeRunningProcesses, computing, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, computing, nvmlProcessInfo_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, computing, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nobody, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nobody, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nobody, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nobody, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nobody, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nobody, nvmlProcessInfo_t)
#undef LIST

// Returns the first word of the process's command, cut to the buffer, or the short name of a process without a command
// line.
NVML_CALL nvmlSystemGetProcessName(unsigned pid, char* to, unsigned room) {
  if (!library().started()) return NVML_ERROR_UNINITIALIZED;
  if (to == nullptr || room == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  if (!read_first(path, to, room)) return NVML_ERROR_NOT_FOUND;
  if (*to != '\0') return NVML_SUCCESS;
  std::snprintf(path, sizeof path, "/proc/%u/comm", pid);
  return read_first(path, to, room) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

}  // namespace guest::nvml
