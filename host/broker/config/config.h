// ivgpud's configuration: a TOML file, beside it one for each VM that is added and removed by itself (drop_ins.h),
// and one table of keys (config_keys.cc) that parses, checks, explains and prints itself. The operator writes it and
// is trusted; a mistake gets one sentence that names the file, the key and what is allowed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/owner.h"

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
  std::int64_t outlive_s = 0;  // how long sessions go on without a broker; 0: they end with it
  std::string metrics;         // "": none; a path, or a loopback address
};

struct GpuOptions {
  std::string library;
  std::string policy = "shared";
  std::int64_t longest_lease_ms = 1000;
  bool overcommit = false;
  std::string mps_control;  // the path of nvidia-cuda-mps-control; "": the one in PATH
};

struct VmOptions {
  std::string name;
  std::string file;  // its own, "" where its table stands in the broker's
  std::int64_t region_size = 0;
  std::int64_t slots = 0;
  std::int64_t spare = 0;
  std::int64_t spin_threads = 0;
  std::int64_t spin_us = 0;
  std::int64_t wait_spin_ms = 0;
  std::int64_t starts_per_second = 0;
  std::int64_t start_burst = 0;
  std::int64_t connections = 0;
  std::int64_t socket_mode = 0;  // as the broker's where the file does not say, like the next two
  std::string socket_owner, socket_group;
  std::vector<std::string> gpus;  // none: all; gpus.h explains their forms
  std::string placement = "fixed";
  std::string jail;
  std::string jail_ioctls = "listed";
  std::int64_t worker_uid = 0;
  std::int64_t worker_gid = 0;
  bool huge_pages = false;
  std::string transport = "doorbell";
  std::int64_t vectors = 1;  // of QEMU's device
  std::string plain_file;
  std::int64_t vsock_cid = 0;   // of the VM; 0: it has no vsock, and neither has
  std::int64_t vsock_port = 0;  // this VM's broker
  std::int64_t bell_us = 0;
  std::int64_t bell_idle_ms = 0;
  std::int64_t weight = 1;
  bool latency = false;               // of the latency class
  std::int64_t reserve = 0;           // percent of a GPU's time
  std::int64_t active_threads = 100;  // percent of a GPU's multiprocessors, under MPS
  std::int64_t chaos_delay_us = 0;
  std::int64_t session_image_bytes = 0;
  std::int64_t session_objects = 0;
  std::int64_t memory_max = 0;  // bytes; 0: no bound
  std::int64_t gpu_memory = 0;  // the same, of each GPU
  std::int64_t pids_max = 0;    // 0: no bound
  std::int64_t cpu_max = 0;     // thousandths of a processor; 0: no bound
  bool own_uid = false;         // no other VM's workers, and no other program by custom, run as worker_uid
};

// A VM's own file that is not taken.
struct RefusedFile {
  std::string vm;        // by the file's name, which may be no VM's; "" for a folder of them
  std::string sentence;  // that names the file
};

struct Config {
  BrokerOptions broker;
  GpuOptions gpu;
  std::vector<VmOptions> vms;
  std::vector<RefusedFile> refused;
  std::vector<std::string> remarks;  // sentences about keys of before
  bool may_be_empty = false;         // there is a folder for files of VMs, so that VMs may come later
};

// Who may connect to the socket of a VM, or to the broker's own for its status.
template <class Options>
FileAccess access_of(const Options& options) {
  return {static_cast<unsigned>(options.socket_mode), options.socket_owner, options.socket_group};
}

// How many interrupts the broker gives each of the VM's guests: the worker of slot k raises number k % guest_vectors.
// 0: none, the device is an ivshmem-plain. With a bell channel each slot has one.
std::uint32_t guest_vectors(const VmOptions& options);

// Whether QEMU opens the region by a path, and gets no descriptor of it: all but ivshmem-doorbell.
inline bool opened_by_path(const VmOptions& options) { return options.transport != "doorbell"; }
// The region's start in the memory that QEMU opens, and the size of all of it.
std::size_t region_start(const VmOptions& options);
std::size_t memory_bytes(const VmOptions& options);

// `text` is the contents of `file`. False when something is wrong, and `error` is one sentence.
bool parse_config(std::string text, const std::string& file, unsigned cores, Config& config, std::string& error);

// The same of a file at `path`, which may be unreadable, and of the files of single VMs that belong to it: what is wrong
// in one of those is in `config.refused`, and no failure.
bool read_config(const std::string& path, unsigned cores, Config& config, std::string& error);

// True if it can be a VM's name: a file has this name, too, and the region's header holds it.
bool is_vm_name(const std::string& name);

// A key in words, for docs/configuration.md. `table`: broker, gpu, or vm for [defaults] and every [vm.NAME].
struct KeyInWords {
  std::string table, name, type, fallback, allowed, help;  // fallback: in Markdown
  std::string reload;                                      // when a change counts, once the file is read again
};
std::vector<KeyInWords> keys_in_words();

// The defaults as a file with every key explained; it parses.
std::string default_config(unsigned cores);

}  // namespace host::broker
