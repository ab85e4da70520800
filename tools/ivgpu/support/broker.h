// A broker of our own for as long as one command runs: a temporary configuration, ivgpud, and everything of it gone at
// any kind of end. ivgpud watches a pipe whose other end only this process holds.
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

// How VMs share a GPU. A private broker leaves the GPU to other brokers, too, unless its policy is another.
struct Sharing {
  std::string policy = "time-slice";
  std::vector<std::string> latency_vms = {};  // those of the latency class
  std::map<std::string, int> weights = {};    // of VMs that have another one than 1
};

struct BrokerOptions {
  std::string vm;                          // the VM's name, and with it the socket's
  std::string gpu = "auto";                // auto, sim, or the path of a libcuda.so.1
  std::string region_size = "1GiB";        // as in ivgpud's configuration; empty: see for_a_program_here()
  std::vector<std::string> more_vms = {};  // beside `vm`, with the same settings
  Sharing sharing = {};
  std::string transport = "doorbell";       // as in ivgpud's configuration, of each VM
  std::uint32_t vsock = 0;                  // the first VM's vsock_cid and vsock_port; 0: neither is said
  std::uint32_t vectors = 1;                // interrupts of each VM's device, if extra_config does not say it
  std::filesystem::path extra_config = {};  // TOML appended to ours, for settings without an option here
  bool verbose = false;                     // let the broker's log through to stderr
  // The program has our environment, and chooses from all GPUs of this machine by CUDA_VISIBLE_DEVICES and
  // CUDA_DEVICE_ORDER. So the workers must not have chosen by them before.
  bool program_chooses_gpus = false;
};

class PrivateBroker {
 public:
  // Returns when the sockets are up and a spare worker is ready; a signal meanwhile is an Error.
  PrivateBroker(const Install& install, const BrokerOptions& options, const std::filesystem::path& folder,
                const SignalGate& gate);
  ~PrivateBroker();

  const std::filesystem::path& socket() const { return socket_; }
  pid_t pid() const { return process_->pid(); }

  // Has its VMs share GPUs so from now on; returns when they do.
  void take_sharing(const Sharing& sharing);

  // Passes on the errors in the broker's log, for a command that failed: a program in a guest cannot know why its host
  // could not serve it.
  void explain(int code) const;

  // Ends it and its workers. Explains, names the processes that a signal killed meanwhile, and returns the code to end
  // with: `code`, or that of a death where these count (deaths.h).
  int end(int code);

 private:
  std::vector<std::string> stop();

  std::filesystem::path socket_, log_, last_status_, config_;
  BrokerOptions options_;
  Fd alive_;  // ivgpud ends when this closes
  std::optional<Child> process_;
};

// The meaning of `auto` on this machine: "auto", the driver of the system, if there is an NVIDIA GPU, else "sim". Any
// other choice is returned as it is.
std::string resolved_gpu(const std::string& gpu, bool machine_has_gpu);

// The same for this machine. The simulated GPU takes the place of a real one only where it was asked for, or this said
// so on stderr.
BrokerOptions for_this_machine(BrokerOptions options);
// The same for a program that runs on this machine, in our environment. An empty region_size becomes roomy_region().
BrokerOptions for_a_program_here(BrokerOptions options);

// In bytes.
std::uint64_t memory_of_machine();

// The largest region_size that a broker makes on a machine with so much memory, and whose sessions have their arena at
// one address for program and GPU (ring::window_bytes). Its pages take memory only once they are touched. `own_slots`: an
// extra configuration may set the number of slots.
std::string roomy_region(std::uint64_t memory_bytes, bool own_slots);

// The configuration as text; a GPU given as a path becomes absolute.
std::string broker_config(const BrokerOptions& options, const std::filesystem::path& runtime_dir);

// The key `vectors` of options.extra_config, whose first lines belong to the VM. Nothing: it is not said there.
std::optional<std::uint32_t> extra_vectors(const BrokerOptions& options);

// The socket of a broker that serves programs of this machine already, if there is one.
std::optional<std::string> running_broker();

}  // namespace ivgpu
