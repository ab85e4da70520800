#include "host/broker/config/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ring/layout/layout.h"

namespace host::broker {
namespace {

using Kind = KeyKind;
using B = BrokerOptions;
using G = GpuOptions;
using V = VmOptions;

constexpr std::int64_t mebi = 1 << 20, tebi = mebi << 20;
// The smallest region is the smallest power of two that holds one slot. The help texts quote both sizes.
constexpr std::int64_t least_region = 32 * mebi;
static_assert(ring::min_slot_bytes == 26 * mebi);
static_assert(ring::slot_bytes_for(least_region, 1) >= ring::min_slot_bytes &&
              ring::slot_bytes_for(least_region / 2, 1) < ring::min_slot_bytes);
constexpr std::int64_t last_id = 4294967294;  // the kernel reads -1 as "none"

// Half of the cores, because each polling worker has a polling guest. With two cores or fewer they would only
// alternate.
std::int64_t half_of(unsigned cores) {
  return cores <= 2 ? 0 : std::clamp<std::int64_t>(cores / 2, 2, ring::max_slots);
}

const Key keys[] = {
    {"broker", "runtime_dir", Kind::Text, "\"/run/ivgpu\"", nullptr, 0, 0, "the path of a folder, beginning with /",
     "The folder of the sockets: <runtime_dir>/<vm>.sock. ivgpud makes the folder if it does not exist.",
     Reload::Restart, &B::runtime_dir},
    {"broker", "socket_mode", Kind::Mode, "\"0660\"", nullptr, 0, 0777, "permissions in octal, as \"0660\"",
     "Permissions of the VMs' sockets, which decide who can use a VM's GPU, and of the status socket.", Reload::Restart,
     &B::socket_mode},
    {"broker", "socket_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the broker's own",
     "The sockets' user. Only a broker that is root can choose another user.", Reload::Restart, &B::socket_owner},
    {"broker", "socket_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the broker's own",
     "The sockets' group, usually QEMU's. Members of the group may use every VM's socket and plain_file: one group "
     "for all VMs makes their QEMUs one trust domain.",
     Reload::Restart, &B::socket_group},
    {"broker", "trace_mode", Kind::Mode, "\"0600\"", nullptr, 0, 0777, "permissions in octal, as \"0600\"",
     "Permissions of the socket of `ivgpu trace`, which shows the calls and arguments of all VMs.", Reload::Restart,
     &B::trace_mode},
    {"broker", "trace_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the broker's own", "The user of the trace socket.", Reload::Restart,
     &B::trace_owner},
    {"broker", "trace_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the broker's own", "The group of the trace socket.", Reload::Restart,
     &B::trace_group},
    {"broker", "worker_uids", Kind::Users, "\"\"", nullptr, 0, 0,
     "a range of numbers of users, as \"200000-200063\", or \"\" for none",
     "The n-th VM of the file gets the n-th number as worker_uid and worker_gid, unless the VM sets them. Needs "
     "root.",
     Reload::NewVms, &B::worker_uids},
    {"broker", "log_level", Kind::Choice, "\"info\"", nullptr, 0, 0, "\"debug\", \"info\", \"warning\" or \"error\"",
     "The lowest level of messages that go to standard error.", Reload::Now, &B::log_level},
    {"broker", "worker", Kind::Text, "\"\"", nullptr, 0, 0,
     "the path of ivgpu-worker, or \"\" for the one beside ivgpud", "The program that serves one guest process.",
     Reload::Restart, &B::worker},
    {"broker", "cgroups", Kind::Choice, "\"best-effort\"", nullptr, 0, 0, "\"best-effort\", \"required\" or \"off\"",
     "Whether each VM's workers get a control group (version 2). memory_max, pids_max and cpu_max need it.",
     Reload::Restart, &B::cgroups},
    {"broker", "outlive_s", Kind::Integer, "5", nullptr, 0, 60, "an integer from 0 to 60",
     "As a service of systemd: how many seconds sessions continue without ivgpud, until the next ivgpud starts. 0: "
     "sessions end with ivgpud, as without systemd.",
     Reload::Restart, &B::outlive_s},
    {"broker", "metrics", Kind::Address, "\"\"", nullptr, 0, 0,
     "\"\" for none, the path of a socket, beginning with /, or an address of the loopback, as \"127.0.0.1:9910\" or "
     "\"[::1]:9910\"",
     "Where Prometheus reads metrics of VMs and sessions, by GET /metrics. A socket has the permissions of "
     "socket_mode, socket_owner and socket_group; every user of this machine may read an address of the loopback.",
     Reload::Now, &B::metrics},

    {"gpu", "library", Kind::Text, "\"auto\"", nullptr, 0, 0,
     "\"auto\", \"sim\" or the path of a libcuda.so.1, beginning with /",
     "The driver: the system's (auto), the simulated GPU for tests (sim), or the library at a path.", Reload::Restart,
     &G::library},

    {"gpu", "policy", Kind::Choice, "\"shared\"", nullptr, 0, 0, "\"shared\", \"time-slice\" or \"mps\"",
     "How VMs share a GPU. shared: by leases, with weights. time-slice: by the driver's time slices, without "
     "weights. mps: at the same time, as clients of NVIDIA's MPS, which ivgpud starts; the VMs of a GPU then must "
     "trust each other. A change to or from \"mps\" needs a restart.",
     Reload::Now, &G::policy},
    {"gpu", "mps_control", Kind::Text, "\"\"", nullptr, 0, 0,
     "the path of nvidia-cuda-mps-control, beginning with /, or \"\" for the one in PATH",
     "With \"mps\": NVIDIA's program that starts and controls MPS.", Reload::Restart, &G::mps_control},
    {"gpu", "longest_lease_ms", Kind::Integer, "1000", nullptr, 100, 60000, "an integer from 100 to 60000",
     "With \"shared\": how many milliseconds a VM that wants a GPU waits at most, whatever the weights. If the "
     "broker is silent for this time, all VMs get the GPU again.",
     Reload::Now, &G::longest_lease_ms},
    {"gpu", "overcommit", Kind::Boolean, "false", nullptr, 0, 0, "true or false",
     "Whether the sum of the VMs' gpu_memory may exceed the GPU's memory. A VM that allocates late may then get less "
     "than its gpu_memory.",
     Reload::Now, &G::overcommit},

    {"vm", "region_size", Kind::Size, "\"1GiB\"", nullptr, least_region, tebi,
     "a power of two from \"32MiB\" to \"1TiB\"",
     "The memory that the VM and its workers share: BAR2 of the VM's device.", Reload::Restart, &V::region_size},
    {"vm", "slots", Kind::Integer, "8", nullptr, 1, ring::max_slots, "an integer from 1 to 64",
     "How many guest processes can use the GPU at the same time. Slots divide the region equally; a slot has at "
     "least 26 MiB.",
     Reload::Restart, &V::slots},
    {"vm", "spare", Kind::Integer, "1", nullptr, 0, ring::max_slots, "an integer from 0 to 64",
     "Workers started ahead, so that a program starts at once. Each worker takes device memory.", Reload::Now,
     &V::spare},
    {"vm", "spin_threads", Kind::Integer, "half of the processors, at least 2; 0 where there are two or fewer", half_of,
     0, ring::max_slots, "an integer from 0 to 64",
     "How many of the VM's workers may poll before they sleep. 0: the VM's guests do not poll either.",
     Reload::NewSessions, &V::spin_threads},
    {"vm", "spin_us", Kind::Integer, "50", nullptr, 0, ring::longest_spin_us, "an integer from 0 to 10000",
     "How many microseconds a worker polls at most, if spin_threads allows it to poll. The worker's guest polls up "
     "to 8 times as long, or 16 times if the guest's waits last so long. Worker and guest poll less when polling "
     "does not pay.",
     Reload::NewSessions, &V::spin_us},
    {"vm", "wait_spin_ms", Kind::Integer, "20", nullptr, 0, 60000, "an integer from 0 to 60000",
     "How many milliseconds a wait may spin in the driver while another wait of its session spins; then the wait "
     "pauses between polls. 0: without limit.",
     Reload::NewSessions, &V::wait_spin_ms},
    {"vm", "starts_per_second", Kind::Integer, "20", nullptr, 1, 1000, "an integer from 1 to 1000",
     "How many workers start per second at most, in the long run.", Reload::Now, &V::starts_per_second},
    {"vm", "start_burst", Kind::Integer, "32", nullptr, 1, 1000, "an integer from 1 to 1000",
     "How many workers may start at once after a pause.", Reload::Now, &V::start_burst},
    {"vm", "connections", Kind::Integer, "128", nullptr, 1, 4096, "an integer from 1 to 4096",
     "How many processes may be connected to the VM's socket.", Reload::Now, &V::connections},
    {"vm", "socket_mode", Kind::Mode, "\"\"", nullptr, -1, 0777,
     "permissions in octal, as \"0660\", or \"\" for those in [broker]",
     "Permissions of the VM's socket or plain_file, which decide who can use the VM's GPU.", Reload::Restart,
     &V::socket_mode},
    {"vm", "socket_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the one in [broker]",
     "The socket's user. A plain_file always belongs to the broker's user.", Reload::Restart, &V::socket_owner},
    {"vm", "socket_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the one in [broker]",
     "The group of socket or plain_file. A separate group for each VM keeps other VMs' QEMUs out.", Reload::Restart,
     &V::socket_group},
    {"vm", "gpus", Kind::List, "\"all\"", nullptr, 0, 0,
     "\"all\", or an array of GPUs, each by its index, its UUID (or how that begins) or its PCI address",
     "The host's GPUs that the VM's guests see, in this order, numbered from 0.", Reload::NewSessions, &V::gpus},
    {"vm", "placement", Kind::Choice, "\"fixed\"", nullptr, 0, 0, "\"fixed\", \"least-loaded\" or \"packed\"",
     "fixed: the VM gets all GPUs of gpus. Otherwise the VM gets one of them, with enough memory for its gpu_memory, "
     "for as long as ivgpud serves the VM. least-loaded: the GPU with the least promised memory, then with the "
     "fewest VMs. packed: the GPU with the most VMs.",
     Reload::Restart, &V::placement},
    {"vm", "jail", Kind::Choice, "\"best-effort\"", nullptr, 0, 0, "\"best-effort\", \"required\" or \"off\"",
     "Whether a worker starts if the kernel lacks a layer of its jail.", Reload::NewSessions, &V::jail},
    {"vm", "jail_ioctls", Kind::Choice, "\"listed\"", nullptr, 0, 0, "\"listed\" or \"any\"",
     "The requests that a worker may make of NVIDIA's kernel modules: a list for one driver version, or any.",
     Reload::NewSessions, &V::jail_ioctls},
    {"vm", "worker_uid", Kind::Integer, "65534", nullptr, 1, last_id, "an integer from 1 to 4294967294",
     "The workers' user, if the broker is root.", Reload::Restart, &V::worker_uid},
    {"vm", "worker_gid", Kind::Integer, "65534", nullptr, 1, last_id, "an integer from 1 to 4294967294",
     "The workers' group, if the broker is root.", Reload::Restart, &V::worker_gid},
    {"vm", "huge_pages", Kind::Boolean, "false", nullptr, 0, 0, "true or false",
     "Whether the region uses the machine's pool of 2 MiB pages. The whole region is taken at the start.",
     Reload::Restart, &V::huge_pages},
    {"vm", "transport", Kind::Choice, "\"doorbell\"", nullptr, 0, 0, "\"doorbell\", \"plain\" or \"pmem\"",
     "The VM's device. doorbell: ivshmem-doorbell. plain: ivshmem-plain, where the broker must poll for doorbells. "
     "pmem: an NVDIMM or virtio-pmem device, with doorbells by virtio-serial or vsock.",
     Reload::Restart, &V::transport},
    {"vm", "vectors", Kind::Integer, "1", nullptr, 1, ring::max_slots, "an integer from 1 to 64",
     "With \"doorbell\": the number of interrupts of QEMU's device, equal to QEMU's option vectors=, for a guest "
     "with the kernel module. If vectors equals slots, each program has its own interrupt.",
     Reload::Restart, &V::vectors},
    {"vm", "plain_file", Kind::Text, "\"\"", nullptr, 0, 0,
     "the path of a file in /dev/shm or on hugetlbfs, beginning with /, or \"\" for a memfd",
     "With \"plain\" and \"pmem\": the file that QEMU opens. ivgpud creates the file at the start and removes it at "
     "the end.",
     Reload::Restart, &V::plain_file},
    {"vm", "vsock_cid", Kind::Integer, "0", nullptr, 0, last_id,
     "an integer from 3 to 4294967294, 1 for this machine's own programs, or 0 for none",
     "With \"pmem\": the VM's CID, guest-cid of QEMU's vhost-vsock device. The VM's programs may connect to "
     "vsock_port. Each program then has its own doorbell channel, and ivgpud notices the program's end at once.",
     Reload::Restart, &V::vsock_cid},
    {"vm", "vsock_port", Kind::Integer, "0", nullptr, 0, last_id, "an integer from 1024 to 4294967294, or 0 for none",
     "With \"pmem\": the vsock port on which ivgpud accepts connections of this VM's programs. No other VM may have "
     "the port.",
     Reload::Restart, &V::vsock_port},
    {"vm", "doorbell_poll_us", Kind::Integer, "200", nullptr, 50, 1000000, "an integer from 50 to 1000000",
     "With \"plain\" and \"pmem\": the interval in microseconds at which the broker polls for doorbells, until a "
     "second after the last doorbell.",
     Reload::Restart, &V::doorbell_poll_us},
    {"vm", "doorbell_idle_poll_ms", Kind::Integer, "20", nullptr, 1, 500, "an integer from 1 to 500",
     "With \"plain\" and \"pmem\": the interval in milliseconds after a second without a doorbell.", Reload::Restart,
     &V::doorbell_idle_poll_ms},
    {"vm", "weight", Kind::Integer, "1", nullptr, 1, 1000, "an integer from 1 to 1000",
     "With policy = \"shared\": the VM's share of a GPU's time, relative to the weights of other VMs that want the "
     "GPU.",
     Reload::Now, &V::weight},
    {"vm", "latency", Kind::Boolean, "false", nullptr, 0, 0, "true or false",
     "With policy = \"shared\": when the VM wants the GPU, it preempts other VMs at once, within its share.",
     Reload::Now, &V::latency},
    {"vm", "reserve", Kind::Integer, "0", nullptr, 0, 90, "an integer from 0 to 90",
     "With policy = \"shared\": the least share of a GPU's time in percent that the VM gets while it wants the GPU, "
     "whatever the other weights.",
     Reload::Now, &V::reserve},
    {"vm", "active_threads", Kind::Integer, "100", nullptr, 1, 100, "an integer from 1 to 100",
     "With policy = \"mps\": the percentage of its GPU's multiprocessors on which a process of the VM may run.",
     Reload::NewSessions, &V::active_threads},
    {"vm", "chaos_delay_us", Kind::Integer, "0", nullptr, 0, 1000000, "an integer from 0 to 1000000",
     "For tests: random delays up to this many microseconds between a worker's records.", Reload::NewSessions,
     &V::chaos_delay_us},
    {"vm", "session_image_bytes", Kind::Size, "\"2GiB\"", nullptr, mebi, tebi,
     "a power of two from \"1MiB\" to \"1TiB\"",
     "How many bytes of code images a program may have loaded. An image counts twice while it loads; a packed image "
     "also counts by its unpacked size.",
     Reload::NewSessions, &V::session_image_bytes},
    {"vm", "session_objects", Kind::Integer, "262144", nullptr, 64, 1048575, "an integer from 64 to 1048575",
     "How many objects a program may have: streams, events, modules, functions, kernels, globals, links, allocations, "
     "pools, arrays, textures, surfaces, reservations and mappings of virtual memory.",
     Reload::NewSessions, &V::session_objects},
    {"vm", "memory_max", Kind::Limit, "\"auto\"", nullptr, mebi, 16 * tebi,
     "a size such as \"6GiB\", \"auto\" or \"none\"",
     "How much memory the VM's workers may have together, including those parts of the region that a worker accesses "
     "first. If they need more, the kernel kills the largest worker. \"auto\": region_size, plus session_image_bytes "
     "and 1 GiB for each slot.",
     Reload::Now, &V::memory_max},
    {"vm", "gpu_memory", Kind::Quota, "\"none\"", nullptr, 64 * mebi, 16 * tebi,
     "a size of \"64MiB\" to \"16TiB\", or \"none\"",
     "How much memory of each of its GPUs the VM may hold, including the driver's own memory. The VM's guests see a "
     "GPU of this size. \"none\": all VMs with \"none\" share the memory that no VM is promised.",
     Reload::Now, &V::gpu_memory},
    {"vm", "pids_max", Kind::Integer, "4096", nullptr, 0, 4194304, "an integer from 0 to 4194304; 0: no bound",
     "How many threads the VM's workers may have together. Without control groups the bound needs a worker_uid that "
     "no other VM has, and that is not 65534.",
     Reload::Now, &V::pids_max},
    {"vm", "cpu_max", Kind::Processors, "\"none\"", nullptr, 10, 1024 * 1000,
     "a number of processors such as \"4\" or \"2.5\", or \"none\"",
     "How much processor time the VM's workers may have together.", Reload::Now, &V::cpu_max},
};

}  // namespace

std::span<const Key> all_keys() { return keys; }

std::string fallback_of(const Key& key, unsigned cores) {
  return key.by_cores == nullptr ? key.fallback : std::to_string(key.by_cores(cores));
}

std::vector<KeyInWords> keys_in_words() {
  static constexpr const char* types[] = {"integer", "size, as text", "octal number, as text", "boolean", "text",
                                          "text",    "text",          "array, or text",        "text",    "text",
                                          "text",    "text"};
  static constexpr const char* reloads[] = {"at once", "new sessions", "new VMs", "restart"};
  std::vector<KeyInWords> all;
  for (const Key& key : keys) {
    const std::string quote = key.by_cores == nullptr ? "`" : "";
    all.push_back({key.table, key.name, types[static_cast<int>(key.kind)], quote + key.fallback + quote, key.allowed,
                   key.help, reloads[static_cast<int>(key.reload)]});
  }
  return all;
}

std::string default_config(unsigned cores) {
  std::string text = "# Every key of ivgpud with its default.\n";
  std::string_view table;
  for (const Key& key : keys) {
    if (key.table != table) {
      table = key.table;
      text += table == "vm" ? "\n# For all VMs; a [vm.NAME] may have each of these keys for itself.\n[defaults]\n"
                            : fmt::format("\n[{}]\n", table);
    }
    text += fmt::format("# {}\n# Takes {}.\n{} = {}\n", key.help, key.allowed, key.name, fallback_of(key, cores));
  }
  return text + "\n# One table for each VM; its socket is <runtime_dir>/NAME.sock.\n[vm.example]\n";
}

}  // namespace host::broker
