#include "guest/process/process.h"

#include <pthread.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>

#include "guest/base/log.h"
#include "guest/base/uncancelled.h"
#include "guest/base/write_quietly.h"
#include "guest/objects/copy/own_proc.h"
#include "guest/process/thread.h"
#include "ring/abi/descriptor.h"
#include "ring/abi/launch_blocking.h"
#include "ring/abi/visible_devices.h"
#include "ring/base/mutex.h"

namespace guest {

std::atomic<Phase> phase{Phase::Fresh};
bool blocking_launches = false;

namespace {

struct Process {
  ring::Mutex mutex;  // only one cuInit runs at a time
  std::vector<std::uint32_t> visible;
  Context primary[ring::max_devices];
};

Process& process() {
  static Process* const p = new Process;
  return *p;
}

// The thread that is inside fork() and has locked the registrations. Set from the first fork handler to the last.
std::atomic<pthread_t> forking{0};

bool ends_its_fork() {
  pthread_t expected = pthread_self();
  return forking.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
}

// clang does not check these functions, since fork() calls one function to lock and another to unlock. An exit handler
// of the program may fork, too. The child must have no session in this case either, since it would give back the
// parent's slot.
void before_fork() NO_THREAD_SAFETY_ANALYSIS {
  if (session() == nullptr) return;
  session()->memory.registered->before_fork();
  forking.store(pthread_self(), std::memory_order_relaxed);
}

void after_fork_in_parent() NO_THREAD_SAFETY_ANALYSIS {
  if (ends_its_fork()) session()->memory.registered->after_fork_in_parent();
}

void after_fork_in_child() NO_THREAD_SAFETY_ANALYSIS {
  if (ends_its_fork()) session()->memory.registered->after_fork_in_child();
  if (session() == nullptr) return;
  phase.store(Phase::Forked, std::memory_order_relaxed);
  session()->forget();
  // The child must not touch the parent's slot. With the kernel module, the child does not even have the mapping.
  set_session(nullptr);
}

// Runs as an exit handler.
void deinitialize() {
  Phase expected = Phase::Ready;
  phase.compare_exchange_strong(expected, Phase::Ended);
}

constexpr const char* visible_variable = "CUDA_VISIBLE_DEVICES";
constexpr const char* order_variable = "CUDA_DEVICE_ORDER";

// Returns the errors that two environment variables cause before a worker is needed.
CUresult refused_by_environment() {
  const char* order = std::getenv(order_variable);
  if (cuabi::device_order(order) == cuabi::DeviceOrder::Invalid) {
    log(Level::Warn, "%s is \"%s\"; the driver knows FASTEST_FIRST and PCI_BUS_ID", order_variable, order);
    return CUDA_ERROR_INVALID_DEVICE;
  }
  const char* list = std::getenv(visible_variable);
  if (cuabi::may_name_a_device(list)) return CUDA_SUCCESS;
  log(Level::Info, "%s is \"%s\" and names no device", visible_variable, list);
  return CUDA_ERROR_NO_DEVICE;
}

// Finds the host's devices that this program sees, in the program's order.
CUresult choose_devices(const ring::DevicePage& page, std::vector<std::uint32_t>& chosen) {
  std::vector<std::uint32_t> order(page.device_count);
  std::iota(order.begin(), order.end(), 0u);
  const auto bus_id = [&](std::uint32_t device) { return std::string_view(page.device[device].bus_id); };
  if (cuabi::device_order(std::getenv(order_variable)) == cuabi::DeviceOrder::PciBusId)
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bus_id(a) < bus_id(b); });
  std::vector<cuabi::Uuid> uuids;
  for (const std::uint32_t device : order) uuids.push_back(std::to_array(page.device[device].uuid_v2));
  const CUresult result = cuabi::visible_devices(std::getenv(visible_variable), uuids, chosen);
  for (std::uint32_t& index : chosen) index = order[index];
  if (result != CUDA_SUCCESS)
    log(Level::Warn, "%s is \"%s\": of the host's %u devices %s", visible_variable, std::getenv(visible_variable),
        page.device_count, result == CUDA_ERROR_NO_DEVICE ? "it names none" : "it names one twice");
  return result;
}

CUresult adopt(Session* s) REQUIRES(process().mutex) {
  Process& p = process();
  const ring::DevicePage& page = s->slot().devices();
  const std::uint32_t count = page.device_count;
  if (page.init_result != CUDA_SUCCESS || count == 0 || count > ring::max_devices) {
    log(Level::Error, "the host's driver has no usable GPU: its cuInit gave error %u", page.init_result);
    return CUDA_ERROR_NO_DEVICE;
  }
  if (const CUresult r = choose_devices(page, p.visible); r != CUDA_SUCCESS) return r;
  for (std::size_t i = 0; i < p.visible.size(); ++i) {
    const Object* object = s->objects.create(api::Handle::Context, nullptr);
    Context& context = p.primary[i];
    context.handle = reinterpret_cast<CUcontext>(object->id.load(std::memory_order_relaxed));
    context.device = static_cast<std::uint32_t>(i);
    context.number = p.visible[i];
    context.api_version = 3020;  // the driver's value for primary contexts, the same as after cuCtxCreate_v2
    context.id = i + 1;
    context.null_stream.context = &context;
  }
  blocking_launches = cuabi::launches_block(std::getenv(cuabi::launch_blocking_variable));
  set_session(s);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atexit(deinitialize);
  phase.store(Phase::Ready, std::memory_order_release);
  return CUDA_SUCCESS;
}

void write_statistics(Session& s) {
  const char* path = std::getenv("IVGPU_STATS");
  if (path == nullptr || *path == '\0') return;
  std::uint64_t posted = 0, waited = 0, bytes = 0;
  for (std::uint32_t c = 0; c < s.channels().open(); ++c) {
    const Channel::Counts& counts = s.channels().at(c).counts;
    posted += counts.posted_calls;
    waited += counts.waited_calls;
    bytes += counts.bytes;
  }
  bytes += s.memory.staged_bytes;
  char line[160];
  const int n =
      std::snprintf(line, sizeof line, "ivgpu-stats calls=%llu posted=%llu waited=%llu bytes=%llu\n",
                    static_cast<unsigned long long>(calls_of_all_threads()), static_cast<unsigned long long>(posted),
                    static_cast<unsigned long long>(waited), static_cast<unsigned long long>(bytes));
  const int fd = cuabi::open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return log(Level::Warn, "IVGPU_STATS: cannot write %s: %s", path, std::strerror(errno));
  write_quietly(fd, line, static_cast<std::size_t>(n));
  close(fd);
}

}  // namespace

CUresult initialize_with(Session* s) {
  ring::MutexLock lock(process().mutex);
  return phase.load(std::memory_order_relaxed) == Phase::Ready ? CUDA_SUCCESS : adopt(s);
}

CUresult initialize(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Uncancelled here;
  ring::MutexLock lock(process().mutex);
  switch (phase.load(std::memory_order_relaxed)) {
    case Phase::Ready: return CUDA_SUCCESS;
    case Phase::Forked: return CUDA_ERROR_NOT_INITIALIZED;
    case Phase::Ended: return CUDA_ERROR_DEINITIALIZED;
    case Phase::Fresh: break;
  }
  open_log();
  if (const CUresult r = refused_by_environment(); r != CUDA_SUCCESS) return r;
  own_proc();  // opens the folder now, since the program may change its root later
  std::unique_ptr<Region> region = find_region();
  if (region == nullptr) return CUDA_ERROR_NO_DEVICE;
  std::unique_ptr<Session> s = Session::open(std::move(region));
  if (s == nullptr) return CUDA_ERROR_NO_DEVICE;
  const CUresult result = adopt(s.get());
  if (result == CUDA_SUCCESS) (void)s.release();  // the session is never destroyed
  return result;
}

CUresult why_not_ready() {
  switch (phase.load(std::memory_order_acquire)) {
    case Phase::Ready: return Callbacks::is_inside() ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
    case Phase::Ended: return CUDA_ERROR_DEINITIALIZED;
    default: return CUDA_ERROR_NOT_INITIALIZED;
  }
}

std::uint32_t device_count() { return static_cast<std::uint32_t>(process().visible.size()); }
CUresult check_device(CUdevice device) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  return device < 0 || static_cast<std::uint32_t>(device) >= device_count() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

const ring::DeviceInfo& device_info(std::uint32_t ordinal) {
  return session()->slot().devices().device[process().visible[ordinal]];
}
Context& primary(std::uint32_t ordinal) { return process().primary[ordinal]; }

void finish() {
  deinitialize();
  if (phase.load(std::memory_order_relaxed) != Phase::Ended) return;
  const Uncancelled here;
  write_statistics(*session());
  if (session()->ends_with_process()) return;
  session()->code.variables->leave();
  // The slot's next process would see the program's bytes. If some pages cannot be taken out of the slot, the slot is
  // kept until the process ends.
  if (session()->memory.registered->remove_all()) session()->leave();
}

}  // namespace guest
