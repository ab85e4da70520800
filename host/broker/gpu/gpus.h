// The GPUs of the host, from its kernel, and the choice of those that a VM gets (the key `gpus`). No driver is loaded
// for it: NVIDIA's kernel module lists its GPUs below /proc.
//
// Trust: the operator writes the key, the kernel the files. `ivgpu check` reads them by this, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace host::broker {

struct Gpu {
  std::optional<unsigned> index;  // in the order of PCI addresses, as nvidia-smi counts; none of a MIG device
  std::string uuid;               // "GPU-...", "MIG-..."; "": the kernel does not know it yet
  std::string pci;                // "0000:81:00.0"; "": of a MIG device
  std::string node;               // "/dev/nvidia0"; "": it has none, as a simulated one
  bool node_missing = false;
};

// One GPU from the kernel's file `information`. Nothing if the text is not that of a GPU which can be used.
std::optional<Gpu> parse_gpu(std::string_view information);

// In the order of PCI addresses. `root`: the folder of the machine, of a test's for one.
std::vector<Gpu> gpus_of_machine(const std::string& root = "");

// Those of the simulated GPU's library; `count` is the value of IVGPU_SIM_DEVICES, null where it is not set.
std::vector<Gpu> simulated_gpus(const char* count);

// "GPU 0 (GPU-..., 0000:81:00.0)"
std::string in_words(const Gpu& gpu);

struct VmGpus {
  bool all = true;                   // all that the driver shows its workers
  std::vector<Gpu> list;             // the guest's ordinals are places in it; with `all`, the host's GPUs
  std::vector<std::string> devices;  // the device files that its workers may open; none: all of NVIDIA's
  std::string placement = {};  // the word by which the one was chosen (host/broker/alloc/placement.h); "": none was
};

// `wanted` is the key's value: none means all. False when it makes no sense on this host, and `error` is one sentence.
bool choose_gpus(const std::vector<std::string>& wanted, const std::vector<Gpu>& host, VmGpus& chosen,
                 std::string& error);

// The GPUs of which a VM is to get one: those that `wanted` names, or all that can be given. False when there is none, and
// `error` is one sentence.
bool find_candidates(const std::vector<std::string>& wanted, const std::vector<Gpu>& host, std::vector<Gpu>& candidates,
                     std::string& error);

// A VM's GPUs where it has this one alone.
VmGpus one_gpu(const Gpu& gpu);

// Makes CUDA show a worker its VM's GPUs in their order; `environment` is NAME=value. With `all`, the environment stays
// as it is.
void show_only(const VmGpus& gpus, std::vector<std::string>& environment);

}  // namespace host::broker
