// ivgpud's configuration: a TOML file, and drop-in files of single VMs (drop_ins.h). One table of keys (config_keys.cc)
// drives parsing, checks, help and printing. The operator writes the files and is trusted. A mistake yields one
// sentence that names the file, the key and the allowed values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/owner.h"
#include "host/base/result.h"

namespace host::broker {

struct BrokerOptions {
  std::string runtime_dir;
  std::int64_t socket_mode = 0;
  std::string socket_owner, socket_group;
  std::int64_t trace_mode = 0;
  std::string trace_owner, trace_group;
  std::string worker_uids;
  std::string log_level;
  std::string worker;
  std::string cgroups;
  std::int64_t outlive_s = 0;  // seconds that sessions go on without a broker; 0: they end with it
  std::string metrics;         // "": none; else a path or a loopback address
};

struct GpuOptions {
  std::string library;
  std::string policy = "shared";
  std::int64_t longest_lease_ms = 1000;
  bool overcommit = false;
  std::string mps_control;  // path of nvidia-cuda-mps-control; "": found in PATH
};

struct VmOptions {
  std::string name;
  std::string file;  // the VM's drop-in file; "": its table is in the broker's file
  std::int64_t region_size = 0;
  std::int64_t slots = 0;
  std::int64_t spare = 0;
  std::int64_t spin_threads = 0;
  std::int64_t spin_us = 0;
  std::int64_t wait_spin_ms = 0;
  std::int64_t starts_per_second = 0;
  std::int64_t start_burst = 0;
  std::int64_t connections = 0;
  std::int64_t socket_mode = 0;  // this and the next two: inherited from the broker if unset
  std::string socket_owner, socket_group;
  std::vector<std::string> gpus;  // empty: all; gpus.h explains the forms
  std::string placement = "fixed";
  std::string jail;
  std::string jail_ioctls = "listed";
  std::int64_t worker_uid = 0;
  std::int64_t worker_gid = 0;
  bool huge_pages = false;
  std::string transport = "doorbell";
  std::int64_t vectors = 1;  // MSI-X vectors of QEMU's device
  std::string plain_file;
  std::int64_t vsock_cid = 0;   // 0: no vsock
  std::int64_t vsock_port = 0;  // the port where the broker listens for this VM
  std::int64_t doorbell_poll_us = 0;
  std::int64_t doorbell_idle_poll_ms = 0;
  std::int64_t weight = 1;
  bool latency = false;               // in the latency class
  std::int64_t reserve = 0;           // percent of a GPU's time
  std::int64_t active_threads = 100;  // percent of a GPU's multiprocessors, under MPS
  std::int64_t chaos_delay_us = 0;
  std::int64_t session_image_bytes = 0;
  std::int64_t session_objects = 0;
  std::int64_t memory_max = 0;  // bytes; 0: unlimited
  std::int64_t gpu_memory = 0;  // bytes of each GPU; 0: unlimited
  std::int64_t pids_max = 0;    // 0: unlimited
  std::int64_t cpu_max = 0;     // thousandths of a processor; 0: unlimited
  bool own_uid = false;         // only this VM's workers run as worker_uid, and it is not 65534
};

// A drop-in file that was rejected.
struct RefusedFile {
  std::string vm;        // from the file's name, which may be no valid VM name; "" for a whole folder
  std::string sentence;  // names the file
};

struct Config {
  BrokerOptions broker;
  GpuOptions gpu;
  std::vector<VmOptions> vms;
  std::vector<RefusedFile> refused;
  std::vector<std::string> remarks;  // sentences about obsolete keys
  bool may_be_empty = false;         // a drop-in folder exists, so VMs may come later
};

// Mode, owner and group of a VM's socket, or of the broker's sockets.
template <class Options>
FileAccess access_of(const Options& options) {
  return {static_cast<unsigned>(options.socket_mode), options.socket_owner, options.socket_group};
}

// Interrupt vectors of each guest of the VM: the worker of slot k raises vector k % guest_vectors. 0: none
// (ivshmem-plain). With a doorbell channel (pmem) each slot has its own.
std::uint32_t guest_vectors(const VmOptions& options);

// True if QEMU opens the region by path instead of getting a descriptor: every transport but ivshmem-doorbell.
inline bool opened_by_path(const VmOptions& options) { return options.transport != "doorbell"; }
// Offset of the region in the memory that QEMU opens, and that memory's size.
std::size_t region_start(const VmOptions& options);
std::size_t memory_bytes(const VmOptions& options);

// `text` is the contents of `file`. An error, one sentence, if it has a mistake.
Result<Config> parse_config(std::string text, const std::string& file, unsigned cores);

// Reads the file at `path` and its drop-in files. A mistake in a drop-in file goes to `config.refused` and is no
// failure.
Result<Config> read_config(const std::string& path, unsigned cores);

// True if a file name and the region header can hold the name.
bool is_vm_name(const std::string& name);

// A key as text, for docs/configuration.md. `table`: broker, gpu, or vm for [defaults] and every [vm.NAME].
struct KeyInWords {
  std::string table, name, type, fallback, allowed, help;  // fallback: in Markdown
  std::string reload;                                      // when a changed value takes effect
};
std::vector<KeyInWords> keys_in_words();

// The defaults as a valid file that explains every key.
std::string default_config(unsigned cores);

}  // namespace host::broker
