// The only Driver object, the conditions under which calls may use it, and the state of each thread.
#include "host/simgpu/api/driver.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/device/settings.h"
#include "host/simgpu/api/device/usage_file.h"
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/memory/address_space.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

// The driver that calls may use. It is null before cuInit, in a forked child and during exit; `absent` then holds the
// reason.
constinit std::atomic<Driver*> live{nullptr};
constinit std::atomic<CUresult> absent{CUDA_ERROR_NOT_INITIALIZED};
constinit std::atomic<bool> forked{false};

pthread_key_t thread_key;
thread_local ThreadState* thread_state = nullptr;

void end_thread(void* state) {
  auto* ending = static_cast<ThreadState*>(state);
  if (Driver* driver = Driver::get()) {
    for (const auto& [context, stream] : ending->streams) forget_stream(*driver, *stream);
    const ring::MutexLock order(driver->schedule.order());
    for (const auto& [context, stream] : ending->streams) stream->destroyed = true;
  }
  delete ending;
  thread_state = nullptr;
}

// fork() copies neither the parent's other threads nor a usable state of its locks, so a child must not touch the
// driver.
void in_forked_child() {
  live.store(nullptr, std::memory_order_relaxed);
  forked.store(true, std::memory_order_relaxed);
}

// From this point on, calls that destroy objects return DEINITIALIZED. Work in flight ends with the process.
void at_exit() {
  live.store(nullptr, std::memory_order_release);
  absent.store(CUDA_ERROR_DEINITIALIZED, std::memory_order_release);
}

// Removes the oldest lines, each whole, until at most `most` bytes are left.
void keep_newest(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  const std::size_t lost = text.size() - most;
  const std::size_t line_end = text.find('\n', lost - 1);
  text.erase(0, line_end == std::string::npos ? lost : line_end + 1);
}

}  // namespace

Driver* Driver::get(CUresult* why) {
  Driver* driver = live.load(std::memory_order_acquire);
  if (driver == nullptr && why != nullptr) *why = absent.load(std::memory_order_acquire);
  return driver;
}

bool Driver::is_forked() { return forked.load(std::memory_order_relaxed); }

CUresult Driver::initialise() {
  static ring::Mutex& once = *new ring::Mutex;
  if (is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
  const ring::MutexLock lock(once);
  if (get() != nullptr) return CUDA_SUCCESS;
  if (absent.load() == CUDA_ERROR_DEINITIALIZED) return CUDA_ERROR_DEINITIALIZED;
  Settings settings;
  if (const CUresult error = read_settings(settings); error != CUDA_SUCCESS) return error;
  static Driver* driver = nullptr;
  try {
    if (driver == nullptr) driver = new Driver(settings);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    report("the system gives no thread to run kernels on (RLIMIT_NPROC, or the control group's pids.max)");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  if (pthread_key_create(&thread_key, end_thread) != 0 || pthread_atfork(nullptr, nullptr, in_forked_child) != 0 ||
      std::atexit(at_exit) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  live.store(driver, std::memory_order_release);
  return CUDA_SUCCESS;
}

Driver::Driver(const Settings& settings)
    : launch_blocking(settings.launch_blocking), virtual_memory(*this, 2 * settings.memory * settings.visible.size()) {
  UsageFile* const usage = settings.usage;
  UsageEntry* const published = usage != nullptr ? entry_of(*usage, static_cast<std::uint32_t>(getpid())) : nullptr;
  // One thread can run all work in order, so only a schedule without any thread is an error.
  if (!schedule.start()) throw std::system_error(EAGAIN, std::generic_category());
  for (const std::uint32_t index : settings.visible) {
    devices.push_back(std::make_unique<Device>(static_cast<int>(index), settings.memory));
    if (const unsigned missing = devices.back()->engine.missing_workers(); missing != 0)
      report("the system gives no thread for " + std::to_string(missing) + " of the processors: kernels run on fewer");
    devices.back()->pageable = settings.pageable;
    devices.back()->context_memory = settings.context_memory;
    if (settings.chunks_below != 0) devices.back()->space.impl().place_chunks_below(settings.chunks_below);
    if (published == nullptr) continue;
    devices.back()->space.publish_use(&published->bytes[index]);
    devices.back()->time.share(usage->time[index], published->off[index]);
  }
  int ordinal = 0;
  for (const auto& device : devices) {
    device->primary = std::make_shared<Context>(*device);
    device->primary->is_primary = true;
    device->primary->id = next_id();
    device->primary->handle = contexts.insert(device->primary);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal++};
    const std::shared_ptr<MemoryPool> pool = make_pool(*this, *device, properties);
    pool->is_default = true;
    device->pools = {.standard = pool->handle, .current = pool->handle};
  }
}

ThreadState& Driver::thread() {
  if (thread_state == nullptr) {
    thread_state = new ThreadState;
    thread_state->id = next_id();
    pthread_setspecific(thread_key, thread_state);
  }
  return *thread_state;
}

bool Driver::in_callback() const { return thread_state != nullptr && thread_state->in_callback; }

Context* Driver::current() {
  if (thread_state == nullptr || thread_state->contexts.empty()) return nullptr;
  return thread_state->contexts.back().get();
}

std::shared_ptr<Context> Driver::current_shared() {
  return current() == nullptr ? nullptr : thread_state->contexts.back();
}

Device* Driver::device(CUdevice ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size()) return nullptr;
  return devices[static_cast<std::size_t>(ordinal)].get();
}

void Driver::fail(const Fault& fault) {
  const ring::MutexLock lock(fault_mutex_);
  if (this->fault() != CUDA_SUCCESS) return;
  log_error(fault.what);
  fault_.store(fault.code, std::memory_order_release);
}

void Driver::print(Context& context, std::string_view text) {
  std::size_t most = 0;
  {
    const ring::MutexLock lock(context.mutex);
    most = context.limits[CU_LIMIT_PRINTF_FIFO_SIZE];
  }
  const ring::MutexLock lock(output_mutex_);
  std::string& output = output_[&context];
  output.append(text);
  keep_newest(output, most);
}

void Driver::flush_output() {
  const ring::MutexLock lock(output_mutex_);
  if (output_.empty()) return;
  for (const auto& [context, text] : output_) std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  output_.clear();
}

void never_issued(const void* handle, HandleKind expected) {
  static constexpr const char* names[] = {"handle",
                                          "context",
                                          "stream",
                                          "event",
                                          "module",
                                          "function",
                                          "library",
                                          "kernel",
                                          "memory pool",
                                          "array",
                                          "mipmapped array",
                                          "texture reference",
                                          "green context",
                                          "description of resources",
                                          "link",
                                          "surface reference",
                                          "graph",
                                          "graph node",
                                          "executable graph",
                                          "user object"};
  char line[128];
  std::snprintf(line, sizeof line, "%p was passed as a %s, but was never given out as one.", handle,
                names[static_cast<std::size_t>(expected)]);
  report(line);
  std::abort();
}

}  // namespace simgpu
