// NVIDIA's management library (libnvidia-ml.so.1), for ivgpu-nvml and the probe; the broker loads no driver library.
//
// It is loaded by path or through the loader; ring/nvml/types.h has its types.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  // Null if it cannot be loaded or initialised, and `why` is one sentence.
  static std::unique_ptr<Library> load(const std::string& path, std::string& why);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  using Device = nvmlDevice_t;
  // By "GPU-...", "MIG-..." or PCI address. Null if the library does not know it.
  Device find(const std::string& gpu, std::string& why) const;
  // Bytes that programs can have of the device; 0, and `why`, if the library does not report them.
  std::uint64_t memory(Device device, std::string& why) const;
  // All compute processes on the device. False if the library does not report them.
  bool processes(Device device, std::vector<Process>& all, std::string& why) const;
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
