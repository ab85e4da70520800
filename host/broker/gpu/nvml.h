// What NVIDIA's management library (libnvidia-ml.so.1) tells of GPUs. For ivgpu-nvml and the probe; the broker itself loads no
// driver.
//
// The library is taken by path or by the loader, and its types are ring/nvml/types.h's.
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
  bool told = false;  // false: the library does not say how much it holds
};

class Library {
 public:
  // Null where it cannot be loaded or does not start, and `why` is one sentence.
  static std::unique_ptr<Library> load(const std::string& path, std::string& why);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  using Device = nvmlDevice_t;
  // By "GPU-...", "MIG-..." or a PCI address. Null: it does not know it.
  Device find(const std::string& gpu, std::string& why) const;
  // The bytes that programs can have of it; 0, and `why`, where it does not say.
  std::uint64_t memory(Device device, std::string& why) const;
  // All processes that compute on it. False where it does not say.
  bool processes(Device device, std::vector<Process>& all, std::string& why) const;
  // What guests may know of it; all that the library does not say is left out.
  host::broker::GpuFacts facts(Device device) const;

 private:
  struct Functions;
  Library(void* handle, std::unique_ptr<Functions> functions);
  std::string words(int result) const;

  void* const handle_;
  const std::unique_ptr<Functions> functions_;
};

}  // namespace nvml
