// Lists the host's GPUs and chooses those of a VM (the key `gpus`). It loads no driver: NVIDIA's kernel module lists
// its GPUs below /proc.
//
// Trust: the operator writes the key, the kernel the files. `ivgpu check` uses this, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/result.h"

namespace host::broker {

struct Gpu {
  std::optional<unsigned> index;  // in the order of PCI addresses, as nvidia-smi counts; none for a MIG device
  std::string uuid;               // "GPU-...", "MIG-..."; "": not known to the kernel yet
  std::string pci;                // "0000:81:00.0"; "": a MIG device
  std::string node;               // "/dev/nvidia0"; "": none, as for a simulated GPU
  bool node_missing = false;
};

// Parses the kernel's file `information`. Nothing if it does not describe a usable GPU.
[[nodiscard]] std::optional<Gpu> parse_gpu(std::string_view information);

// In the order of PCI addresses. `root` replaces the machine's root folder in tests.
std::vector<Gpu> gpus_of_machine(const std::string& root = "");

// The GPUs of the simulated GPU's library; `count` is the value of IVGPU_SIM_DEVICES, null if unset.
std::vector<Gpu> simulated_gpus(const char* count);

// "GPU 0 (GPU-..., 0000:81:00.0)"
std::string in_words(const Gpu& gpu);

struct VmGpus {
  bool all = true;                   // every GPU that the driver shows the workers
  std::vector<Gpu> list;             // indexed by the guest's ordinals; with `all`, the host's GPUs
  std::vector<std::string> devices;  // device files that workers may open; empty: all of NVIDIA's
  std::string placement = {};        // how the GPU was chosen (host/broker/alloc/placement.h); "": it was not
};

// `wanted` is the key's value; empty means all. An error, one sentence, if it does not fit this host.
Result<VmGpus> choose_gpus(const std::vector<std::string>& wanted, const std::vector<Gpu>& host);

// The GPUs among which a placement chooses: those that `wanted` names, or all that can be used. An error, one sentence,
// if there is none.
Result<std::vector<Gpu>> find_candidates(const std::vector<std::string>& wanted, const std::vector<Gpu>& host);

// The GPUs of a VM that has this one only.
VmGpus one_gpu(const Gpu& gpu);

// Makes CUDA show a worker its VM's GPUs in their order. `environment` is NAME=value; with `all` it stays as it is.
void show_only(const VmGpus& gpus, std::vector<std::string>& environment);

}  // namespace host::broker
