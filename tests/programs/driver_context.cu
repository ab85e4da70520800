// A program on the driver API in the style of NVIDIA's samples: linked against libcuda, with kernels that NVRTC
// compiles at run time, and with contexts from cuCtxCreate instead of the primary one. It uses two contexts alternately
// by push and pop, then each context in its own thread at the same time, and then one context after the other has
// ended.
#include <nvrtc.h>

#include <string>
#include <thread>

#include "check.h"

namespace {

const char* name_of(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : "an unknown error";
}

#define CHECK_CALL(call)                                                                           \
  do {                                                                                             \
    const CUresult check_result = (call);                                                          \
    CHECK_THAT(check_result == CUDA_SUCCESS, "%s:%d: %s gave %s.", __FILE_NAME__, __LINE__, #call, \
               name_of(check_result));                                                             \
  } while (0)

#define CHECK_NVRTC(call)                                                                           \
  do {                                                                                              \
    const nvrtcResult check_result = (call);                                                        \
    CHECK_THAT(check_result == NVRTC_SUCCESS, "%s:%d: %s gave %s.", __FILE_NAME__, __LINE__, #call, \
               nvrtcGetErrorString(check_result));                                                  \
  } while (0)

constexpr char source[] = R"(
__device__ unsigned runs = 0;
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&runs, 1);
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

// Compiles for the oldest architecture that NVRTC knows, since every later GPU runs this PTX.
std::string compile() {
  nvrtcProgram program = nullptr;
  int count = 0;
  CHECK_NVRTC(nvrtcGetNumSupportedArchs(&count));
  std::vector<int> known(static_cast<size_t>(count));
  CHECK_NVRTC(nvrtcGetSupportedArchs(known.data()));
  CHECK_THAT(count > 0, "NVRTC knows no architecture.");
  const std::string architecture = "--gpu-architecture=compute_" + std::to_string(known.front());
  const char* options[] = {architecture.c_str(), "--fmad=false"};
  CHECK_NVRTC(nvrtcCreateProgram(&program, source, "saxpy.cu", 0, nullptr, nullptr));
  CHECK_NVRTC(nvrtcCompileProgram(program, 2, options));
  size_t size = 0;
  CHECK_NVRTC(nvrtcGetPTXSize(program, &size));
  std::string ptx(size, '\0');
  CHECK_NVRTC(nvrtcGetPTX(program, ptx.data()));
  CHECK_NVRTC(nvrtcDestroyProgram(&program));
  return ptx;
}

// The objects of a context. They are created, used and destroyed while the context is current.
class Work {
 public:
  Work(const std::string& ptx, size_t n, unsigned salt) : x_(n), y_(n) {
    for (size_t i = 0; i < n; ++i) {
      x_[i] = static_cast<float>(check::small_number(i, salt));
      y_[i] = static_cast<float>(check::small_number(i, salt + 1));
    }
    CHECK_CALL(cuModuleLoadData(&module_, ptx.c_str()));
    CHECK_CALL(cuModuleGetFunction(&saxpy_, module_, "saxpy"));
    CHECK_CALL(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK_CALL(cuEventCreate(&done_, CU_EVENT_DISABLE_TIMING));
    CHECK_CALL(cuMemAlloc(&device_x_, n * sizeof(float)));
    CHECK_CALL(cuMemAlloc(&device_y_, n * sizeof(float)));
    CHECK_CALL(cuMemcpyHtoDAsync(device_x_, x_.data(), n * sizeof(float), stream_));
    CHECK_CALL(cuMemcpyHtoDAsync(device_y_, y_.data(), n * sizeof(float), stream_));
  }

  void run(float a) {
    auto n = static_cast<unsigned>(x_.size());
    void* parameters[] = {&a, &device_x_, &device_y_, &n};
    CHECK_CALL(cuLaunchKernel(saxpy_, (n + 255) / 256, 1, 1, 256, 1, 1, 0, stream_, parameters, nullptr));
    CHECK_CALL(cuEventRecord(done_, stream_));
    for (size_t i = 0; i < x_.size(); ++i) y_[i] = a * x_[i] + y_[i];
    ++runs_;
  }

  // Compares the result with the CPU's, and returns its checksum.
  uint64_t finish(const char* name) {
    std::vector<float> got(y_.size());
    unsigned counted = 0;
    CUdeviceptr runs = 0;
    size_t size = 0;
    CHECK_CALL(cuEventSynchronize(done_));
    CHECK_CALL(cuMemcpyDtoH(got.data(), device_y_, got.size() * sizeof(float)));
    check::compare(name, got, y_);
    CHECK_CALL(cuModuleGetGlobal(&runs, &size, module_, "runs"));
    CHECK_CALL(cuMemcpyDtoH(&counted, runs, sizeof counted));
    CHECK_THAT(size == sizeof counted && counted == runs_, "%s: %u runs were counted and not %u.", name, counted,
               runs_);
    return check::checksum(got);
  }

  void free() {
    CHECK_CALL(cuMemFree(device_x_));
    CHECK_CALL(cuMemFree(device_y_));
    CHECK_CALL(cuEventDestroy(done_));
    CHECK_CALL(cuStreamDestroy(stream_));
    CHECK_CALL(cuModuleUnload(module_));
  }

 private:
  std::vector<float> x_, y_;
  CUmodule module_ = nullptr;
  CUfunction saxpy_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent done_ = nullptr;
  CUdeviceptr device_x_ = 0, device_y_ = 0;
  unsigned runs_ = 0;
};

CUcontext current() {
  CUcontext context = nullptr;
  CHECK_CALL(cuCtxGetCurrent(&context));
  return context;
}

CUcontext make_context(CUdevice device) {
  CUcontext made = nullptr;
  CHECK_CALL(cuCtxCreate(&made, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, device));
  CHECK_THAT(made != nullptr && current() == made, "A context that was just made is not current.");
  return made;
}

void push(CUcontext context) {
  CHECK_CALL(cuCtxPushCurrent(context));
  CHECK_THAT(current() == context, "The context that was pushed is not current.");
}

void pop(CUcontext context) {
  CUcontext popped = nullptr;
  CHECK_CALL(cuCtxPopCurrent(&popped));
  CHECK_THAT(popped == context, "Another context was popped than was pushed.");
}

void in_turn(CUcontext first, Work& of_first, CUcontext second, Work& of_second, long rounds) {
  for (long round = 0; round < rounds; ++round) {
    const auto a = static_cast<float>(round % 3 + 1);
    push(first);
    of_first.run(a);
    push(second);
    of_second.run(a + 1);
    pop(second);
    CHECK_THAT(current() == first, "The context below is not current.");
    pop(first);
  }
}

// Uses each context in its own thread.
void at_once(CUcontext first, Work& of_first, CUcontext second, Work& of_second, long rounds) {
  const auto use = [rounds](CUcontext context, Work& work) {
    CHECK_THAT(current() == nullptr, "A new thread has a current context.");
    CHECK_CALL(cuCtxSetCurrent(context));
    for (long round = 0; round < rounds; ++round) work.run(1);
    CHECK_CALL(cuCtxSynchronize());
  };
  std::thread one([&] { use(first, of_first); }), other([&] { use(second, of_second); });
  one.join();
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  long n = 10000, rounds = 3;
  check::parse(argc, argv, "driver_context", "contexts of the program's own, kernels compiled at run time",
               {{"--n", "elements", &n, 1, 1 << 22}, {"--rounds", "rounds", &rounds, 1, 100}});
  CUdevice device = -1;
  CHECK_CALL(cuInit(0));
  CHECK_CALL(cuDeviceGet(&device, 0));
  const std::string ptx = compile();
  const auto count = static_cast<size_t>(n);

  const CUcontext first = make_context(device);
  Work of_first(ptx, count, 1);
  const CUcontext second = make_context(device);
  Work of_second(ptx, count, 7);
  pop(second);
  pop(first);
  CHECK_THAT(current() == nullptr, "A context is current after both were popped.");

  in_turn(first, of_first, second, of_second, rounds);
  at_once(first, of_first, second, of_second, rounds);
  push(second);
  std::printf("second context: %016llx\n", static_cast<unsigned long long>(of_second.finish("second")));
  of_second.free();
  CHECK_CALL(cuCtxDestroy(second));
  CHECK_THAT(current() == nullptr, "A destroyed context is current.");

  push(first);
  of_first.run(2);
  std::printf("first context, after the second's end: %016llx\n",
              static_cast<unsigned long long>(of_first.finish("first")));
  CHECK_CALL(cuCtxDestroy(first));  // also destroys the context's objects
  std::printf("driver_context passed\n");
}
