// NVIDIA's management library (libnvidia-ml.so.1), for ivgpu-nvml and the probe; the broker loads no driver library.
//
// It is loaded by path or through the loader; ring/nvml/types.h has its types.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/base/result.h"
#include "host/broker/gpu/gpu_facts.h"
#include "ring/nvml/types.h"

namespace nvml {

struct Process {
  unsigned pid = 0;
  std::uint64_t bytes = 0;
  bool answered = false;  // false: the library does not report how much the process holds
};

class Library {
 public:
  // An error, one sentence, if it cannot be loaded or initialised.
  static host::Result<std::unique_ptr<Library>> load(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  using Device = nvmlDevice_t;
  // By "GPU-...", "MIG-..." or PCI address. An error if the library does not know it.
  host::Result<Device> find(const std::string& gpu) const;
  // Bytes that programs can have of the device; 0 if the library does not report them.
  std::uint64_t memory(Device device) const;
  // All compute processes on the device. An error if the library does not report them.
  host::Result<std::vector<Process>> processes(Device device) const;
  // The facts that guests may know; those that the library does not report are left out.
  host::broker::GpuFacts facts(Device device) const;

 private:
  struct Functions;
  Library(void* handle, std::unique_ptr<Functions> functions);
  std::string words(int result) const;

  void* const handle_;
  const std::unique_ptr<Functions> functions_;
};

}  // namespace nvml
