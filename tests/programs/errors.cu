// Tests bad input, and checks the name of each call's error. Afterwards a kernel accesses an invalid address, after
// which every call of the process returns that error. New processes, started by fork and exec, must work nevertheless,
// or get errors of their own faults.
//
// The expected names are those that the real driver returned (580.159.04, CUDA 13.0, H200). The program does not use a
// handle after its destruction, since CUDA leaves such uses undefined.
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "check.h"

namespace {

int wrong = 0;

void expect(const char* name, const char* got, const char* expected) {
  std::printf("%s: %s\n", name, got);
  if (std::strcmp(got, expected) == 0) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s gave %s, expected %s.\n", name, got, expected);
  ++wrong;
}

// Each case starts without a pending error. The case `last_error` tests `cudaGetLastError` itself.
void expect(const char* name, cudaError_t got, cudaError_t expected) {
  expect(name, cudaGetErrorName(got), cudaGetErrorName(expected));
  (void)cudaGetLastError();
}

void expect(const char* name, CUresult got, CUresult expected) {
  expect(name, check::driver_error_name(got), check::driver_error_name(expected));
}

__global__ void add_one(int* value) { ++*value; }
__global__ void write_to(int* address) { *address = 1; }
__global__ void stop_here() { asm volatile("trap;"); }

__device__ int device_symbol = 5;
int host_symbol = 6;

constexpr size_t absurd_size = size_t{1} << 60;

// A module in PTX text, so that the driver's own loading is tested with an image that every GPU can run.
constexpr char good_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.visible .entry give_answer(.param .u64 out)
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [answer];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";
constexpr char bad_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry broken()
{
  this is no instruction;
}
)";
constexpr char future_version_ptx[] = ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry f() { ret; }\n";
constexpr char future_target_ptx[] = ".version 7.0\n.target sm_999\n.address_size 64\n.visible .entry f() { ret; }\n";
constexpr char garbage[] = "this is neither a fat binary nor a cubin nor PTX";

// The calls of the driver API that the cases use.
struct Driver {
  decltype(&::cuModuleLoadData) load = DRIVER_ENTRY(cuModuleLoadData);
  decltype(&::cuModuleUnload) unload = DRIVER_ENTRY(cuModuleUnload);
  decltype(&::cuModuleGetFunction) get_function = DRIVER_ENTRY(cuModuleGetFunction);
  decltype(&::cuModuleGetGlobal) get_global = DRIVER_ENTRY(cuModuleGetGlobal);
  decltype(&::cuLaunchKernel) launch = DRIVER_ENTRY(cuLaunchKernel);
  decltype(&::cuCtxSynchronize) synchronize = DRIVER_ENTRY(cuCtxSynchronize);
  decltype(&::cuMemAlloc) allocate = DRIVER_ENTRY(cuMemAlloc);
  decltype(&::cuMemFree) free = DRIVER_ENTRY(cuMemFree);
  decltype(&::cuMemcpyDtoD) copy_on_device = DRIVER_ENTRY(cuMemcpyDtoD);
  decltype(&::cuMemsetD32) fill = DRIVER_ENTRY(cuMemsetD32);
  decltype(&::cuDeviceGet) get_device = DRIVER_ENTRY(cuDeviceGet);
  decltype(&::cuDeviceGetAttribute) get_attribute = DRIVER_ENTRY(cuDeviceGetAttribute);
  decltype(&::cuStreamDestroy) destroy_stream = DRIVER_ENTRY(cuStreamDestroy);
  decltype(&::cuEventRecord) record = DRIVER_ENTRY(cuEventRecord);
  decltype(&::cuGetErrorName) error_name = DRIVER_ENTRY(cuGetErrorName);
};

void launches(int* value) {
  add_one<<<0, 1>>>(value);
  expect("launch: grid of 0", cudaGetLastError(), cudaErrorInvalidValue);
  add_one<<<1, 0>>>(value);
  expect("launch: block of 0", cudaGetLastError(), cudaErrorInvalidValue);
  add_one<<<1, 4096>>>(value);
  expect("launch: block of 4096", cudaGetLastError(), cudaErrorInvalidValue);
  add_one<<<dim3(1, 65536), 1>>>(value);
  expect("launch: grid of 1 x 65536", cudaGetLastError(), cudaErrorInvalidValue);
  add_one<<<1, dim3(1, 1, 65)>>>(value);
  expect("launch: block of 1 x 1 x 65", cudaGetLastError(), cudaErrorInvalidValue);
  add_one<<<1, 1, 1 << 20>>>(value);
  expect("launch: 1 MiB of dynamic shared memory", cudaGetLastError(), cudaErrorInvalidValue);
  expect("launch: after those, synchronize", cudaDeviceSynchronize(), cudaSuccess);
  void* arguments[] = {&value};
  expect("launch: a kernel that does not exist",
         cudaLaunchKernel(&host_symbol, dim3(1), dim3(1), arguments, 0, nullptr), cudaErrorInvalidResourceHandle);
  expect("attribute: 1 MiB of dynamic shared memory",
         cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20), cudaErrorInvalidValue);
}

void last_error(int* value) {
  expect("last error: none", cudaGetLastError(), cudaSuccess);
  add_one<<<0, 1>>>(value);
  add_one<<<1, 1>>>(value);
  expect("last error: a good launch leaves it", cudaPeekAtLastError(), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  add_one<<<0, 1>>>(value);
  const cudaError_t peeked = cudaPeekAtLastError();
  const cudaError_t first = cudaGetLastError();
  const cudaError_t second = cudaGetLastError();
  expect("last error: peeked", peeked, cudaErrorInvalidValue);
  expect("last error: read", first, cudaErrorInvalidValue);
  expect("last error: read again", second, cudaSuccess);
}

void check_good_module(const Driver& driver, CUmodule module) {
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t size = 0;
  expect("module: a kernel", driver.get_function(&function, module, "give_answer"), CUDA_SUCCESS);
  expect("module: an unknown kernel", driver.get_function(&function, module, "give_nothing"), CUDA_ERROR_NOT_FOUND);
  expect("module: a variable", driver.get_global(&address, &size, module, "answer"), CUDA_SUCCESS);
  expect("module: a variable's size", std::to_string(size).c_str(), "4");
  expect("module: an unknown variable", driver.get_global(&address, &size, module, "question"), CUDA_ERROR_NOT_FOUND);
  expect("module: an unknown variable's size", std::to_string(size).c_str(), "0");

  CHECK_DRIVER(driver.get_function(&function, module, "give_answer"));
  int* out = check::device_buffer<int>(1);
  void* arguments[] = {&out};
  const auto launch = [&](unsigned grid, unsigned block, unsigned shared) {
    return driver.launch(function, grid, 1, 1, block, 1, 1, shared, nullptr, arguments, nullptr);
  };
  expect("cuLaunchKernel: grid of 0", launch(0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  expect("cuLaunchKernel: block of 4096", launch(1, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  expect("cuLaunchKernel: 1 MiB of dynamic shared memory", launch(1, 1, 1 << 20), CUDA_ERROR_INVALID_VALUE);
  expect("cuLaunchKernel", launch(1, 1, 0), CUDA_SUCCESS);
  expect("cuLaunchKernel: the answer", std::to_string(check::host_copy(out, 1)[0]).c_str(), "42");
  CHECK_CUDA(cudaFree(out));
}

void images(const Driver& driver) {
  CUmodule module = nullptr;
  expect("image: garbage", driver.load(&module, garbage), CUDA_ERROR_INVALID_IMAGE);
  expect("image: PTX with a syntax error", driver.load(&module, bad_ptx), CUDA_ERROR_INVALID_PTX);
  expect("image: PTX of a future version", driver.load(&module, future_version_ptx),
         CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  expect("image: PTX for a future target", driver.load(&module, future_target_ptx), CUDA_ERROR_INVALID_PTX);
  expect("image: good PTX", driver.load(&module, good_ptx), CUDA_SUCCESS);
  check_good_module(driver, module);
  expect("module: unload", driver.unload(module), CUDA_SUCCESS);
}

void symbols() {
  int copy = 0;
  expect("symbol: copied", cudaMemcpyFromSymbol(&copy, device_symbol, sizeof(copy)), cudaSuccess);
  expect("symbol: its value", std::to_string(copy).c_str(), "5");
  expect("symbol: unknown", cudaMemcpyFromSymbol(&copy, host_symbol, sizeof(copy)), cudaErrorInvalidSymbol);
  expect("symbol: more than it holds", cudaMemcpyFromSymbol(&copy, device_symbol, 1 << 20), cudaErrorInvalidValue);
}

void allocations(const Driver& driver) {
  void* buffer = nullptr;
  void* pinned = nullptr;
  int on_the_stack = 0;
  expect("cudaMalloc: absurd size", cudaMalloc(&buffer, absurd_size), cudaErrorMemoryAllocation);
  expect("cudaMalloc: small, after that", cudaMalloc(&buffer, 4096), cudaSuccess);
  expect("cudaFree: inside an allocation", cudaFree(static_cast<char*>(buffer) + 256), cudaErrorInvalidValue);
  expect("cudaFree", cudaFree(buffer), cudaSuccess);
  expect("cudaFree: twice", cudaFree(buffer), cudaErrorInvalidValue);
  expect("cudaFree: never allocated", cudaFree(&on_the_stack), cudaErrorInvalidValue);
  expect("cudaFree: null", cudaFree(nullptr), cudaSuccess);
  expect("cudaMalloc: size 0", cudaMalloc(&buffer, 0), cudaSuccess);
  expect("cudaHostAlloc: absurd size", cudaHostAlloc(&pinned, absurd_size, cudaHostAllocDefault),
         cudaErrorMemoryAllocation);
  expect("cudaFreeHost: never allocated", cudaFreeHost(&on_the_stack), cudaErrorInvalidValue);

  CUdeviceptr address = 0;
  expect("cuMemAlloc: size 0", driver.allocate(&address, 0), CUDA_ERROR_INVALID_VALUE);
  expect("cuMemAlloc: absurd size", driver.allocate(&address, absurd_size), CUDA_ERROR_OUT_OF_MEMORY);
  expect("cuMemAlloc", driver.allocate(&address, 64), CUDA_SUCCESS);
  expect("cuMemFree", driver.free(address), CUDA_SUCCESS);
  expect("cuMemFree: twice", driver.free(address), CUDA_ERROR_INVALID_VALUE);
  expect("cuMemFree: null", driver.free(0), CUDA_SUCCESS);
}

void copies(const Driver& driver, size_t size) {
  std::vector<char> host(2 * size);
  char* buffer = check::device_buffer<char>(size);
  const auto address = reinterpret_cast<CUdeviceptr>(buffer);
  const auto host_address = reinterpret_cast<CUdeviceptr>(host.data());
  expect("cudaMemcpy", cudaMemcpy(buffer, host.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  expect("cudaMemcpy: unknown direction", cudaMemcpy(buffer, host.data(), size, static_cast<cudaMemcpyKind>(9)),
         cudaErrorInvalidMemcpyDirection);
  expect("cudaMemcpy: past the end", cudaMemcpy(buffer, host.data(), 2 * size, cudaMemcpyHostToDevice),
         cudaErrorInvalidValue);
  expect("cudaMemcpy: size 0", cudaMemcpy(buffer, host.data(), 0, cudaMemcpyHostToDevice), cudaSuccess);
  expect("cudaMemcpy: from null", cudaMemcpy(buffer, nullptr, size, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect("cudaMemcpy: to null", cudaMemcpy(nullptr, host.data(), size, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect("cudaMemset: past the end", cudaMemset(buffer, 0, 2 * size), cudaErrorInvalidValue);
  expect("cuMemcpyDtoD: from host memory", driver.copy_on_device(address, host_address, size),
         CUDA_ERROR_INVALID_VALUE);
  expect("cuMemcpyDtoD: to host memory", driver.copy_on_device(host_address, address, size), CUDA_ERROR_INVALID_VALUE);
  expect("cuMemsetD32: host memory", driver.fill(host_address, 0, size / 4), CUDA_ERROR_INVALID_VALUE);
  expect("cudaFree, of that", cudaFree(buffer), cudaSuccess);
}

void devices(const Driver& driver) {
  CUdevice device = 0;
  int value = 0;
  expect("cudaSetDevice: 9999", cudaSetDevice(9999), cudaErrorInvalidDevice);
  expect("cudaSetDevice: -1", cudaSetDevice(-1), cudaErrorInvalidDevice);
  expect("cudaSetDevice: 0", cudaSetDevice(0), cudaSuccess);
  expect("cuDeviceGet: 9999", driver.get_device(&device, 9999), CUDA_ERROR_INVALID_DEVICE);
  expect("cuDeviceGetAttribute: an unknown one", driver.get_attribute(&value, static_cast<CUdevice_attribute>(9999), 0),
         CUDA_ERROR_INVALID_VALUE);
  expect("cuDeviceGetAttribute: an unknown device", driver.get_attribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 9999),
         CUDA_ERROR_INVALID_DEVICE);
  const char* text = nullptr;
  expect("cuGetErrorName: an unknown code", driver.error_name(static_cast<CUresult>(123456), &text),
         CUDA_ERROR_INVALID_VALUE);
}

void streams_and_events(const Driver& driver) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr, other = nullptr;
  float milliseconds = 0;
  expect("cuStreamDestroy: null", driver.destroy_stream(nullptr), CUDA_ERROR_INVALID_HANDLE);
  expect("cuEventRecord: null", driver.record(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  expect("cudaEventRecord: null", cudaEventRecord(nullptr, nullptr), cudaErrorInvalidResourceHandle);
  expect("cudaStreamCreateWithFlags: unknown flag", cudaStreamCreateWithFlags(&stream, 0x100), cudaErrorInvalidValue);
  expect("cudaEventCreateWithFlags: unknown flag", cudaEventCreateWithFlags(&event, 0x100), cudaErrorInvalidValue);

  CHECK_CUDA(cudaEventCreate(&event));
  CHECK_CUDA(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
  expect("cudaEventQuery: never recorded", cudaEventQuery(event), cudaSuccess);
  expect("cudaEventSynchronize: never recorded", cudaEventSynchronize(event), cudaSuccess);
  expect("cudaStreamWaitEvent: never recorded", cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
  expect("cudaEventElapsedTime: never recorded", cudaEventElapsedTime(&milliseconds, event, event),
         cudaErrorInvalidResourceHandle);
  CHECK_CUDA(cudaEventRecord(event, nullptr));
  CHECK_CUDA(cudaEventRecord(other, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  expect("cudaEventElapsedTime: without timing", cudaEventElapsedTime(&milliseconds, event, other),
         cudaErrorInvalidResourceHandle);
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_CUDA(cudaEventDestroy(other));
}

void still_works(const char* name, int* value) {
  CHECK_CUDA(cudaMemset(value, 0, sizeof(int)));
  add_one<<<1, 1>>>(value);
  expect(name, cudaGetLastError(), cudaSuccess);
  expect(name, std::to_string(check::host_copy(value, 1)[0]).c_str(), "1");
}

// The error of a kernel is permanent: this process cannot use the GPU again.
void illegal_address(const Driver& driver, int* value) {
  int copy = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* buffer = nullptr;
  write_to<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  expect("illegal address: its launch", cudaGetLastError(), cudaSuccess);
  expect("illegal address: cudaDeviceSynchronize", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expect("illegal address: cudaDeviceSynchronize again", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expect("illegal address: cuCtxSynchronize", driver.synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  expect("illegal address: cudaMalloc", cudaMalloc(&buffer, 64), cudaErrorIllegalAddress);
  expect("illegal address: cudaMemcpy", cudaMemcpy(&copy, value, sizeof(int), cudaMemcpyDeviceToHost),
         cudaErrorIllegalAddress);
  expect("illegal address: cudaMemset", cudaMemset(value, 0, sizeof(int)), cudaErrorIllegalAddress);
  expect("illegal address: cudaStreamSynchronize", cudaStreamSynchronize(nullptr), cudaErrorIllegalAddress);
  expect("illegal address: cudaStreamQuery", cudaStreamQuery(nullptr), cudaErrorIllegalAddress);
  add_one<<<1, 1>>>(value);
  expect("illegal address: a launch", cudaGetLastError(), cudaErrorIllegalAddress);
  expect("illegal address: cudaFree", cudaFree(value), cudaErrorIllegalAddress);
  expect("illegal address: cudaStreamCreate", cudaStreamCreate(&stream), cudaErrorIllegalAddress);
  expect("illegal address: cudaEventCreate", cudaEventCreate(&event), cudaErrorIllegalAddress);
  (void)cudaStreamCreate(&stream);
  const cudaError_t first = cudaGetLastError();
  const cudaError_t second = cudaGetLastError();
  expect("illegal address: last error", first, cudaErrorIllegalAddress);
  expect("illegal address: last error again", second, cudaSuccess);
  expect("illegal address: a grid of 0", (add_one<<<0, 1>>>(value), cudaGetLastError()), cudaErrorIllegalAddress);
}

// The child writes to the same stdout while the parent waits.
void run_child(const char* mode) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "errors", "--child", mode, static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  CHECK_THAT(child > 0 && waitpid(child, &status, 0) == child, "A new process could not be started.");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::fprintf(stderr, "A new process (%s) ended with %s %d.\n", mode, WIFEXITED(status) ? "code" : "signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  ++wrong;
}

int child(const std::string& mode) {
  int* value = check::device_buffer<int>(2);
  if (mode == "works") {
    still_works("new process", value);
  } else if (mode == "misaligned") {
    write_to<<<1, 1>>>(reinterpret_cast<int*>(reinterpret_cast<char*>(value) + 1));
    expect("misaligned address: cudaDeviceSynchronize", cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
    expect("misaligned address: cudaMalloc", cudaMalloc(&value, 64), cudaErrorMisalignedAddress);
  } else if (mode == "trap") {
    stop_here<<<1, 1>>>();
    expect("trap: cudaDeviceSynchronize", cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    expect("trap: cudaMalloc", cudaMalloc(&value, 64), cudaErrorLaunchFailure);
  } else {
    check::fail("There is no child called %s.", mode.c_str());
  }
  return wrong == 0 ? 0 : 1;
}

int all_cases(size_t size) {
  CHECK_CUDA(cudaSetDevice(0));
  CHECK_CUDA(cudaFree(nullptr));  // creates the context that the driver's calls need
  const Driver driver;
  int* value = check::device_buffer<int>(1);
  launches(value);
  last_error(value);
  images(driver);
  symbols();
  allocations(driver);
  copies(driver, size);
  devices(driver);
  streams_and_events(driver);
  still_works("after all that", value);
  run_child("works");
  still_works("after a child", value);
  illegal_address(driver, value);
  run_child("works");
  run_child("misaligned");
  run_child("trap");
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--child") == 0) return child(argv[2]);
  long size = 4096;
  check::parse(argc, argv, "errors", "checks the error that each kind of bad input gives",
               {{"--size", "bytes of the buffers that are copied wrongly", &size, 512, 1 << 24}});
  return all_cases(static_cast<size_t>(size));
}
