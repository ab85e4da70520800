// A program that gives the GPU endless work and reports its progress to the test (load_progress.h).
//
// usage: loopback_load LIBCUDA FILE KIND [OTHER]
// FILE is this program's progress, OTHER the progress file of a second program. KIND is one of:
//   nothing  repeats an empty kernel and a wait
//   spin     runs a kernel that spins until the second program has launched, then works as `nothing`
//   await    repeats a stream's wait for a value, with a kernel behind the wait; the value comes after 50 more bursts
//   of
//            the second program
//   long     repeats a kernel of 3 ms and a wait
//   count    repeats a kernel that increments a word, and a check of the word
//   both     works as `count` on two devices, and launches on both before either wait
//   other    works as `count` on the second device, while the first device's context is current
// Exit codes: 1 failed call, 2 usage, 3 wrong result.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ring/api/cuda.h"
#include "tests/loopback/load_progress.h"
#include "tests/named_driver.h"

namespace {

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) std::printf("%s: %d\n", what, result), std::exit(1);
}

constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry three_ms() {
  .reg .u64 %t<3>; .reg .pred %p;
  mov.u64 %t1, %globaltimer;
  add.u64 %t1, %t1, 3000000;
again:
  mov.u64 %t2, %globaltimer;
  setp.lt.u64 %p, %t2, %t1;
  @%p bra again;
  ret;
}
.visible .entry add_one(.param .u64 to) {
  .reg .u64 %a; .reg .u32 %v;
  ld.param.u64 %a, [to];
  ld.global.u32 %v, [%a];
  add.u32 %v, %v, 1;
  st.global.u32 [%a], %v;
  ret;
}
.visible .entry spin(.param .u64 until) {
  .reg .u64 %a; .reg .u32 %v; .reg .pred %p;
  ld.param.u64 %a, [until];
  mov.u32 %v, 1;
  st.volatile.global.u32 [%a+4], %v;
again:
  ld.volatile.global.u32 %v, [%a];
  setp.eq.u32 %p, %v, 0;
  @%p bra again;
  ret;
})";

CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  check(CU(cuModuleGetFunction)(&found, module, name), name);
  return found;
}

void launch(CUfunction kernel, void** parameters, CUstream stream = nullptr) {
  static const auto call = CU(cuLaunchKernel);
  check(call(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
}
void wait() {
  static const auto call = CU(cuCtxSynchronize);
  check(call(), "cuCtxSynchronize");
}

void note(load::Progress& progress) { ++progress.done; }

// Words in memory that host and GPU share.
struct Words {
  std::uint32_t* host = nullptr;
  CUdeviceptr device = 0;
  Words() {
    void* at = nullptr;
    check(CU(cuMemHostAlloc)(&at, 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    std::memset(at, 0, 4096);
    check(CU(cuMemHostGetDevicePointer_v2)(&device, at, 0), "cuMemHostGetDevicePointer");
    host = static_cast<std::uint32_t*>(at);
  }
};

// The kernel sets the second word when it has begun, and ends when the host sets the first word.
void spin(CUmodule module, load::Progress& progress, const load::Progress& other) {
  Words words;
  const std::atomic_ref end(words.host[0]), has_begun(words.host[1]);
  void* parameters[] = {&words.device};
  launch(function(module, "spin"), parameters);
  std::thread releases([&] {
    while (has_begun == 0) usleep(200);
    progress.spins = 1;
    // The other program may have launched the first of these two bursts before this kernel began.
    for (const std::uint64_t before = other.done; other.done < before + 2;) usleep(200);
    end = 1;
  });
  wait();
  releases.join();
  progress.spins = 0;
  note(progress);
}

void await(CUmodule module, load::Progress& progress, const load::Progress& other) {
  const Words words;
  const std::atomic_ref value(words.host[0]);
  const CUfunction kernel = function(module, "nothing");
  CUstream stream = nullptr;
  check(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (std::uint32_t next = 1;; ++next) {
    check(CU(cuStreamWaitValue32_v2)(stream, words.device, next, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
    launch(kernel, nullptr, stream);
    std::thread writes([&] {
      for (const std::uint64_t before = other.done; other.done < before + 50;) usleep(200);
      value = next;
    });
    check(CU(cuStreamSynchronize)(stream), "cuStreamSynchronize");
    if (value != next) std::printf("the stream has not waited\n"), std::exit(3);
    writes.join();
    note(progress);
  }
}

// A device with a context and a loaded module.
struct Device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  explicit Device(CUdevice ordinal) {
    check(CU(cuDevicePrimaryCtxRetain)(&context, ordinal), "cuDevicePrimaryCtxRetain");
    use();
    check(CU(cuModuleLoadData)(&module, text), "cuModuleLoadData");
  }
  void use() const { check(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent"); }
};

// A word in device memory that kernels increment. `current` is the device whose context is current during the launch;
// on any other device the kernels use their own stream.
class Sum {
 public:
  explicit Sum(const Device& device) : Sum(device, device) {}
  Sum(const Device& device, const Device& current) : current_(current), kernel_(function(device.module, "add_one")) {
    device.use();
    if (&device != &current) check(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(CU(cuMemAlloc_v2)(&word_, 4), "cuMemAlloc");
    check(CU(cuMemsetD32_v2)(word_, 0, 1), "cuMemsetD32");
  }
  void add_one() {
    void* parameters[] = {&word_};
    current_.use();
    launch(kernel_, parameters, stream_);
    ++right_;
  }
  void look() const {
    std::uint32_t value = 0;
    current_.use();
    if (stream_ == nullptr) {
      check(CU(cuMemcpyDtoH_v2)(&value, word_, 4), "cuMemcpyDtoH");
    } else {
      check(CU(cuMemcpyDtoHAsync_v2)(&value, word_, 4, stream_), "cuMemcpyDtoHAsync");
      check(CU(cuStreamSynchronize)(stream_), "cuStreamSynchronize");
    }
    if (value != right_) std::printf("%u in place of %u\n", value, right_), std::exit(3);
  }

 private:
  const Device& current_;
  CUstream stream_ = nullptr;
  const CUfunction kernel_;
  CUdeviceptr word_ = 0;
  std::uint32_t right_ = 0;
};

void count(std::vector<Sum> sums, load::Progress& progress) {
  for (;;) {
    for (Sum& sum : sums) sum.add_one();
    for (const Sum& sum : sums) sum.look();
    note(progress);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  library = dlopen(argv[1], RTLD_NOW);
  load::Progress* const progress = load::map(argv[2]);
  const std::string kind = argv[3];
  const load::Progress* const other = argc == 5 ? load::map(argv[4]) : nullptr;
  if (library == nullptr || progress == nullptr || ((kind == "spin" || kind == "await") && other == nullptr)) return 2;
  check(CU(cuInit)(0), "cuInit");
  const Device device(0);
  if (kind == "count") count({Sum(device)}, *progress);
  if (kind == "both") {
    const Device second(1);
    count({Sum(device), Sum(second)}, *progress);
  }
  if (kind == "other") {
    const Device second(1);
    count({Sum(second, device)}, *progress);
  }
  if (kind == "await") await(device.module, *progress, *other);
  if (kind == "spin") spin(device.module, *progress, *other);
  const CUfunction kernel = function(device.module, kind == "long" ? "three_ms" : "nothing");
  for (;;) {
    launch(kernel, nullptr);
    wait();
    note(*progress);
  }
}
