// A private broker for the duration of one command: a temporary configuration and ivgpud. Every kind of exit removes
// both, since ivgpud watches a pipe whose write end only this process holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/install.h"

namespace ivgpu {

// How VMs share a GPU. The default policy lets other brokers use the GPU as well.
struct Sharing {
  std::string policy = "time-slice";
  std::vector<std::string> latency_vms = {};  // VMs of the latency class
  std::map<std::string, int> weights = {};    // of VMs whose weight is not 1
};

struct BrokerOptions {
  std::string vm;                          // the VM's name, which also names the socket
  std::string gpu = "auto";                // auto, sim, or the path of a libcuda.so.1
  std::string region_size = "1GiB";        // as in ivgpud's configuration; empty: see for_a_program_here()
  std::vector<std::string> more_vms = {};  // VMs besides `vm`, with the same settings
  Sharing sharing = {};
  std::string transport = "doorbell";       // each VM's transport, as in ivgpud's configuration
  std::uint32_t vsock = 0;                  // the first VM's vsock_cid and vsock_port; 0: not set
  std::uint32_t vectors = 1;                // interrupts of each VM's device, unless extra_config sets them
  std::filesystem::path extra_config = {};  // TOML appended to ours, for settings without an option here
  bool verbose = false;                     // pass the broker's log to stderr
  // The program inherits our environment, and its CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER select from all GPUs. If
  // set, the workers therefore ignore these variables.
  bool program_chooses_gpus = false;
};

class PrivateBroker {
 public:
  // Returns when the sockets exist and a spare worker is ready. Throws an Error if a signal arrives first.
  PrivateBroker(const Install& install, const BrokerOptions& options, const std::filesystem::path& folder,
                const SignalGate& gate);
  ~PrivateBroker();

  const std::filesystem::path& socket() const { return socket_; }
  pid_t pid() const { return process_->pid(); }

  // Changes how its VMs share GPUs; returns when the change is in effect.
  void take_sharing(const Sharing& sharing);

  // Prints the errors of the broker's log after a command failed. A program in a guest cannot know why its host could
  // not serve it.
  void explain(int code) const;

  // Ends the broker and its workers. Calls explain(), names processes that a signal killed, and returns `code`, or
  // exit_code::died if deaths count (deaths.h).
  int end(int code);

 private:
  std::vector<std::string> stop();

  std::filesystem::path socket_, log_, last_status_, config_;
  BrokerOptions options_;
  Fd alive_;  // ivgpud ends when this closes
  std::optional<Child> process_;
};

// Resolves "auto": it stays "auto", the system's driver, if there is an NVIDIA GPU, else it becomes "sim". Other values
// stay unchanged.
std::string resolved_gpu(const std::string& gpu, bool machine_has_gpu);

// Resolves "auto" for this machine. Reports on stderr if the simulated GPU replaces a missing real GPU.
BrokerOptions for_this_machine(BrokerOptions options);
// Same for a program that runs on this machine with our environment. An empty region_size becomes roomy_region().
BrokerOptions for_a_program_here(BrokerOptions options);

// The physical memory in bytes.
std::uint64_t memory_of_machine();

// The largest region_size for this much memory at which each session's arena has the same address for program and GPU
// (ring::window_bytes). Pages take memory only when touched. `own_slots`: an extra configuration may set the slot
// count.
std::string roomy_region(std::uint64_t memory_bytes, bool own_slots);

// The configuration as text. A relative path of a GPU library becomes absolute.
std::string broker_config(const BrokerOptions& options, const std::filesystem::path& runtime_dir);

// The key `vectors` in the first table of options.extra_config, which belongs to the VM; nullopt if absent.
std::optional<std::uint32_t> extra_vectors(const BrokerOptions& options);

// The socket of a running broker that serves programs of this machine.
std::optional<std::string> running_broker();

}  // namespace ivgpu
