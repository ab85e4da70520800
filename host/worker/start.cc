#include "host/worker/start.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "host/base/fd_message.h"
#include "host/base/process/control.h"
#include "host/jail/landlock.h"
#include "host/jail/namespaces.h"
#include "host/jail/privileges.h"
#include "host/jail/seccomp.h"
#include "host/worker/place.h"
#include "ring/api/cuda.h"
#include "ring/api/known_ids.h"
#include "ring/ops/telemetry.h"
#include "ring/verify/mutants.h"

namespace host::worker {
namespace {

int fail(ExitCode code, const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return code;
}

// The layers that are active. Reasons for missing layers are collected for the broker's log.
class Jail {
 public:
  explicit Jail(JailMode mode) : mode_(mode) {}
  bool wanted() const { return mode_ != JailMode::Off; }

  void note(const jail::Result& result) {
    if (result.active()) {
      layers_ |= static_cast<std::uint32_t>(result.layer);
    } else {
      lacks(std::string(name_of(result.layer)) + " (" + result.missing + ")");
    }
  }
  // Records that a part of a layer is missing.
  void lacks(const std::string& what) { missing_ += (missing_.empty() ? "" : "; ") + what; }
  bool acceptable() const { return mode_ != JailMode::Required || missing_.empty(); }
  std::uint32_t layers() const { return layers_; }
  const std::string& missing() const { return missing_; }
  int refusal() const {
    return fail(exit_jail_missing, "the jail is required, but this machine does not give " + missing_);
  }

 private:
  JailMode mode_;
  std::uint32_t layers_ = 0;
  std::string missing_;
};

// Makes the kernel kill the worker when the broker dies. The worker itself would see the control socket's EOF only
// between calls.
bool die_with_broker(pid_t broker) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return broker == 0 || getppid() == broker;  // the broker may have died before prctl()
}

// Lets the worker outlive its broker: from now on the worker watches the liveness pipe
// (host/base/process/liveness_pipe.h). Called just before the worker serves, so that a worker that hangs in the
// driver's start dies with its broker. The jail forbids this change later.
void stay_without_broker(const Options& options) {
  if (options.life_fd >= 0) prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
}

// Maps the slot and nothing else of the region. Returns null if the region does not contain the slot.
std::byte* map_slot(const Options& options) {
  struct stat status {};
  if (fstat(options.region_fd, &status) != 0) return nullptr;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (options.slot_bytes < ring::min_slot_bytes || options.slot_offset > size ||
      options.slot_bytes > size - options.slot_offset) {
    return nullptr;
  }
  void* at = mmap(nullptr, options.slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, options.region_fd,
                  static_cast<off_t>(options.slot_offset));
  if (at == MAP_FAILED) return nullptr;
  madvise(at, options.slot_bytes, MADV_HUGEPAGE);  // effective if shared memory may be huge; refused elsewhere
  return static_cast<std::byte*>(at);
}

// Maps the telemetry, a sparse file. Returns null if there is none. A file that is too small is refused, because a
// write beyond its end would kill the worker.
std::byte* map_telemetry(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < ring::telemetry_bytes) return nullptr;
  void* at = mmap(nullptr, ring::telemetry_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at != MAP_FAILED ? static_cast<std::byte*>(at) : nullptr;
}

// Maps a page of ring/ops/gpu_use.h. Returns null if the page is missing.
template <class Page>
Page* map_page(int fd, int rights) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < sizeof(Page)) return nullptr;
  void* at = mmap(nullptr, sizeof(Page), rights, MAP_SHARED, fd, 0);
  return at != MAP_FAILED ? static_cast<Page*>(at) : nullptr;
}

// Returns false if the scheduler's pages are expected but cannot be mapped.
bool map_gpu_use(const Options& options, GpuUsePages& pages) {
  if (options.orders_fd < 0) return true;
  pages.orders = map_page<const ring::OrdersPage>(options.orders_fd, PROT_READ);
  pages.use = map_page<ring::UsePage>(options.use_fd, PROT_READ | PROT_WRITE);
  pages.scheduler_doorbell_fd = options.scheduler_doorbell_fd;
  pages.devices = std::min(options.gpus, ring::max_devices);
  close(options.orders_fd);
  close(options.use_fd);
  return pages.orders != nullptr && pages.use != nullptr;
}

// Reserves the windows for the arena, so that neither the driver nor the heap takes them. Returns one bit for each
// window that was free. The other windows must not be used, because a session's arena must never replace another
// mapping.
std::uint32_t reserve_windows() {
  std::uint32_t reserved = 0;
  for (std::uint32_t w = 0; w < ring::window_count; ++w) {
    void* wanted = reinterpret_cast<void*>(ring::window_address(w));
    void* at = mmap(wanted, ring::window_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == wanted) {
      reserved |= 1u << w;
    } else if (at != MAP_FAILED) {
      munmap(at, ring::window_bytes);  // an old kernel treats the address as a hint
    }
  }
  return reserved;
}

// Provides the driver library under a path that the worker can open later. The library is opened while the process
// still has its privileges, because the worker's later user may not be able to enter the library's folder.
class Library {
 public:
  explicit Library(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Library() {
    if (fd_ >= 0) close(fd_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::string folder() const {
    std::error_code failed;
    const auto real = std::filesystem::canonical(path_, failed);
    return (failed ? std::filesystem::path(path_) : real).parent_path().string();
  }
  std::string reachable() const {
    if (fd_ < 0 || access(path_.c_str(), R_OK) == 0) return path_;
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  std::string path_;
  int fd_;
};

// Returns the folder through which clients of an MPS server share memory with the server; empty for other workers.
std::vector<std::string> shared_memory() {
  return std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr ? std::vector<std::string>{"/dev/shm"}
                                                           : std::vector<std::string>();
}

jail::LandlockPaths files_for(const Library& library, const Options& options) {
  jail::LandlockPaths paths;
  paths.read = {library.folder(), std::filesystem::path(options.library).parent_path().string()};
  paths.devices = options.devices;
  paths.write = shared_memory();
  if (const char* pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY")) paths.write.emplace_back(pipes);
  return paths;
}

// Landlock is applied before the change of user, since its rules contain folders that the new user may not be able to
// enter.
void give_up_rights(Jail& jail, const Options& options, const Library& library) {
  if (!jail.wanted()) return;
  jail.note(jail::apply_namespaces(shared_memory()));
  jail.note(jail::apply_limits(options.max_threads));
  jail.note(jail::apply_no_new_privileges());
  jail.note(jail::apply_landlock(files_for(library, options)));
  jail.note(jail::apply_user(options.uid, options.gid));
  // Needed until the driver is loaded, because the driver writes files below /proc/self.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

bool driver_has_device_files() {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    const auto target = std::filesystem::read_symlink(entry.path(), failed);
    if (!failed && target.string().rfind("/dev/nvidia", 0) == 0) return true;
  }
  return false;
}

// Reports pageable memory access as a gap in the jail. On a GPU with this capability, a kernel can read and write all
// memory of its process. A guest's kernel could therefore change the worker and bypass every check.
void look_for_pageable_access(Jail& jail, const ring::DevicePage& page) {
  if (!jail.wanted()) return;
  const std::uint32_t devices = std::min(page.device_count, ring::max_devices);
  for (std::uint32_t d = 0; d < devices; ++d) {
    const auto has = [&](CUdevice_attribute a) { return page.device[d].attribute[a] != 0; };
    const std::string what = "memory out of kernels' reach (GPU " + std::to_string(d);
    if (has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES))
      return jail.lacks(what + " has ATS: load nvidia_uvm with uvm_ats_mode=0)");
    if (has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS))
      return jail.lacks(what + " has HMM: load nvidia_uvm with uvm_disable_hmm=1)");
  }
}

// Closes the jail. Returns the listener for connect() calls; -1: none.
int close_jail(Jail& jail, const Options& options, std::uint32_t gpus, std::size_t arena_bytes) {
  if (!jail.wanted()) return -1;
  const jail::Choice choice =
      jail::choose_requests(driver_has_device_files(), options.any_ioctl, jail::kernel_driver(), gpus);
  if (!choice.missing.empty()) jail.lacks(choice.missing);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // other workers may run as the same user and must not read this worker's memory
  int listener = -1;
  jail.note(jail::apply_seccomp(choice.requests, arena_bytes, options.asks_to_connect ? &listener : nullptr));
  return listener;
}

// Fills the slot's device page and header. This is the process's first access to the slot.
void open_slot(ring::SlotView slot, const ring::DevicePage& page, std::uint32_t guest_spin_us) {
  slot.device_page().copy_in(page);
  if (ring::wrong(ring::Mutant::count_twice))
    for (std::uint32_t d = 0; d < slot.device_page()[&ring::DevicePage::device_count].load();) ++d;
  const ring::Shared<ring::SlotHeader> header = slot.header();
  header.copy_in({.magic = 0,
                  .version = ring::layout_version,
                  .channels = ring::max_channels,
                  .arena_offset = ring::arena_offset,
                  .arena_bytes = slot.arena_bytes(),
                  .spin_us = guest_spin_us,
                  .driver_calls = api::known_ids.driver,
                  .session_calls = api::known_ids.session,
                  .fault = 0,
                  .output = 0,
                  .opened = 0,
                  .callbacks_asleep = 0,
                  .heartbeat = 0});
  // Edge M (guest/session/slot/slot.h).
  header[&ring::SlotHeader::magic].store(ring::slot_magic, std::memory_order_release);
}

// Limits the memory that the guest sees to the memory that its VM may have.
void bound_memory(ring::DevicePage& page, std::uint64_t most) {
  if (most == 0) return;
  for (std::uint32_t d = 0; d < std::min(page.device_count, ring::max_devices); ++d)
    page.device[d].total_memory = std::min<std::uint64_t>(page.device[d].total_memory, most);
}

ReadyMessage ready_message(const Jail& jail, const ring::DevicePage& page, std::uint32_t rm_client) {
  ReadyMessage message{};
  message.kind = ready_kind;
  message.layers = jail.layers();
  message.rm_client = rm_client;
  message.gpus = std::min(page.device_count, ring::max_devices);
  message.init = static_cast<std::uint32_t>(page.init_result);
  for (std::uint32_t d = 0; d < message.gpus; ++d) {
    std::memcpy(message.gpu[d].uuid, page.device[d].uuid_v2, sizeof message.gpu[d].uuid);
    message.gpu[d].memory = page.device[d].total_memory;
  }
  const std::string text = jail.wanted() ? jail.missing() : "the jail is off";
  std::memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text - 1));
  return message;
}

// Reports to the broker that the worker is ready. Returns false if the broker has closed the socket. Closes `listener`
// afterwards, since a process that could answer its own connect() calls would have no filter for them.
bool report_ready(const Options& options, const ReadyMessage& ready, int listener) {
  const bool reported = broker::send_with_fd(options.control_fd, &ready, sizeof ready, listener) == sizeof ready;
  if (listener >= 0) close(listener);
  return reported;
}

}  // namespace

int run(const Options& options, const Backend& backend) {
  if (!die_with_broker(options.broker)) return exit_ended;
  if (const std::string why = take_place(options); !why.empty()) return fail(exit_place_failed, why);
  std::byte* const base = map_slot(options);
  if (base == nullptr) return fail(exit_region_failed, "the slot's extent cannot be mapped: it is not in the region");
  const ring::SlotView slot(base, options.slot_bytes);
  Shared shared{.telemetry = map_telemetry(options.telemetry_fd), .windows = 0, .gpu_use = {}};
  if (shared.telemetry == nullptr) return fail(exit_region_failed, "the telemetry cannot be mapped");
  if (!map_gpu_use(options, shared.gpu_use)) return fail(exit_region_failed, "the scheduler's pages cannot be mapped");
  if (backend.report_channels_in) backend.report_channels_in(shared.gpu_use.use);
  shared.windows = reserve_windows();
  close(options.region_fd);
  close(options.telemetry_fd);

  Jail jail(options.jail);
  {
    const Library library(options.library);
    give_up_rights(jail, options, library);
    if (!jail.acceptable()) return jail.refusal();
    // Called again, because a change of user clears this setting.
    if (!die_with_broker(options.broker)) return exit_ended;
    const auto started = backend.start(library.reachable());
    if (!started) return fail(exit_driver_failed, started.error().message);
  }
  const auto page = std::make_unique<ring::DevicePage>();
  backend.describe(*page);
  look_for_pageable_access(jail, *page);
  stay_without_broker(options);
  const int listener = close_jail(jail, options, page->device_count, slot.arena_bytes());
  if (!jail.acceptable()) return jail.refusal();
  const ReadyMessage ready = ready_message(jail, *page, backend.rm_client ? backend.rm_client() : 0);
  bound_memory(*page, options.gpu_memory);
  open_slot(slot, *page, options.guest_spin_us);
  if (!report_ready(options, ready, listener)) return exit_ended;
  return backend.serve(slot, shared);
}

}  // namespace host::worker
