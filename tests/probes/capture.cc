// Asks a driver which calls are prohibited while a stream is being captured, by the capturing thread in each of the
// three modes, and by another thread. docs/design/021-prohibited-in-capture.md has the results of an H200.
// usage: probe_capture [--blocking] [LIBCUDA]     --blocking: the captured stream waits for the NULL stream's work
#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/probes/probe.h"

namespace {

unsigned captured_flags = CU_STREAM_NON_BLOCKING;

const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.global .u32 answer = 42;
.visible .entry empty() { ret; }
)";

// The objects that the questions use. They are created anew for each question, since some calls end them.
struct World {
  CUdevice device = 0;
  CUcontext context = nullptr, other = nullptr;
  CUstream captured = nullptr, stream = nullptr;
  CUevent done = nullptr, unrecorded = nullptr;
  CUmodule module = nullptr;
  CUlibrary loaded = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0, global = 0;
  void* pinned = nullptr;
  std::array<unsigned, 16> plain{};

  World() {
    MUST(CU(cuCtxCreate)(&context, nullptr, 0, device));
    MUST(CU(cuCtxCreate)(&other, nullptr, 0, device));
    MUST(CU(cuCtxSetCurrent)(context));
    MUST(CU(cuStreamCreate)(&captured, captured_flags));
    MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    MUST(CU(cuEventCreate)(&done, 0));
    MUST(CU(cuEventCreate)(&unrecorded, 0));
    MUST(CU(cuModuleLoadData)(&module, ptx));
    MUST(CU(cuLibraryLoadData)(&loaded, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(CU(cuModuleGetFunction)(&function, module, "empty"));
    MUST(CU(cuMemAlloc)(&memory, 64));
    MUST(CU(cuMemAllocHost)(&pinned, 64));
    std::size_t bytes = 0;
    MUST(CU(cuModuleGetGlobal)(&global, &bytes, module, "answer"));
    MUST(CU(cuEventRecord)(done, stream));
    MUST(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    MUST(CU(cuCtxSynchronize)());
  }
  ~World() {
    CU(cuCtxDestroy)(context);
    CU(cuCtxDestroy)(other);
    if (loaded != nullptr) CU(cuLibraryUnload)(loaded);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
};

struct Question {
  const char* name;
  std::function<CUresult(World&)> ask;
};

#define ASK(fn, ...)                                                         \
  {                                                                          \
#fn, [](World & w) { return static_cast<void>(w), CU(fn)(__VA_ARGS__); } \
  }
#define ASK_ON(what, fn, ...)                                                          \
  {                                                                                    \
#fn ", " what, [](World & w) { return static_cast<void>(w), CU(fn)(__VA_ARGS__); } \
  }

CUdeviceptr address = 0;
void* at = nullptr;
std::size_t size = 0, size_too = 0;
int number = 0;
unsigned flags = 0;
CUcontext context = nullptr;
CUstream stream = nullptr;
CUevent event = nullptr;
CUmodule module = nullptr;
CUlibrary loaded = nullptr;
CUkernel kernel = nullptr;
CUfunction function = nullptr;
CUmemoryPool pool = nullptr;
unsigned long long id = 0;

const std::vector<Question> questions{
    ASK(cuDeviceGetAttribute, &number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
    ASK(cuMemGetInfo, &size, &size_too),
    ASK(cuCtxCreate, &context, nullptr, 0, 0),
    ASK(cuCtxDestroy, w.other),
    ASK(cuCtxSynchronize),
    ASK(cuCtxGetLimit, &size, CU_LIMIT_STACK_SIZE),
    ASK(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 2048),
    ASK(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_L1),
    ASK(cuCtxSetSharedMemConfig, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE),
    ASK(cuCtxResetPersistingL2Cache),
    ASK(cuCtxSetFlags, 0),
    ASK(cuCtxGetId, w.context, &id),
    ASK(cuCtxRecordEvent, w.context, w.unrecorded),
    ASK(cuCtxWaitEvent, w.context, w.done),
    ASK(cuCtxGetStreamPriorityRange, &number, &number),
    ASK(cuModuleLoadData, &module, ptx),
    ASK(cuModuleUnload, w.module),
    ASK(cuModuleGetFunction, &function, w.module, "empty"),
    ASK(cuModuleGetGlobal, &address, &size, w.module, "answer"),
    ASK(cuLibraryLoadData, &loaded, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
    ASK(cuLibraryUnload, std::exchange(w.loaded, nullptr)),
    ASK(cuLibraryGetKernel, &kernel, w.loaded, "empty"),
    ASK(cuLibraryGetModule, &module, w.loaded),
    ASK(cuLibraryGetGlobal, &address, &size, w.loaded, "answer"),
    ASK(cuFuncGetAttribute, &number, CU_FUNC_ATTRIBUTE_NUM_REGS, w.function),
    ASK(cuFuncSetAttribute, w.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024),
    ASK(cuFuncSetCacheConfig, w.function, CU_FUNC_CACHE_PREFER_L1),
    ASK(cuFuncLoad, w.function),
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, w.function, 32, 0),
    ASK(cuMemAlloc, &address, 64),
    ASK(cuMemAllocPitch, &address, &size, 64, 4, 4),
    ASK(cuMemAllocManaged, &address, 64, CU_MEM_ATTACH_GLOBAL),
    ASK(cuMemFree, w.memory),
    ASK(cuMemAllocHost, &at, 64),
    ASK(cuMemFreeHost, w.pinned),
    ASK(cuMemHostAlloc, &at, 64, 0),
    ASK(cuMemHostRegister, w.plain.data(), sizeof w.plain, 0),
    ASK(cuMemHostGetDevicePointer, &address, w.pinned, 0),
    ASK(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w.memory),
    ASK(cuDeviceGetDefaultMemPool, &pool, 0),
    ASK_ON("another", cuMemAllocAsync, &address, 64, w.stream),
    ASK_ON("another", cuMemFreeAsync, 0, w.stream),
    ASK(cuMemcpyHtoD, w.memory, w.plain.data(), 64),
    ASK(cuMemcpyDtoH, w.plain.data(), w.memory, 64),
    ASK(cuMemcpyDtoD, w.memory, w.global, 4),
    ASK_ON("another", cuMemcpyHtoDAsync, w.memory, w.pinned, 64, w.stream),
    ASK_ON("another, pageable", cuMemcpyHtoDAsync, w.memory, w.plain.data(), 64, w.stream),
    ASK_ON("the captured, pageable", cuMemcpyHtoDAsync, w.memory, w.plain.data(), 64, w.captured),
    ASK_ON("the captured, pageable", cuMemcpyDtoHAsync, w.plain.data(), w.memory, 64, w.captured),
    ASK_ON("NULL", cuMemcpyHtoDAsync, w.memory, w.pinned, 64, nullptr),
    ASK(cuMemsetD32, w.memory, 1, 16),
    ASK_ON("another", cuMemsetD32Async, w.memory, 1, 16, w.stream),
    ASK_ON("NULL", cuMemsetD32Async, w.memory, 1, 16, nullptr),
    ASK_ON("another", cuLaunchKernel, w.function, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, nullptr),
    ASK_ON("NULL", cuLaunchKernel, w.function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
    ASK_ON("per thread", cuLaunchKernel, w.function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr),
    ASK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING),
    ASK_ON("another", cuStreamDestroy, w.stream),
    ASK_ON("another", cuStreamQuery, w.stream),
    ASK_ON("the captured", cuStreamQuery, w.captured),
    ASK_ON("NULL", cuStreamQuery, nullptr),
    ASK_ON("another", cuStreamSynchronize, w.stream),
    ASK_ON("the captured", cuStreamSynchronize, w.captured),
    ASK_ON("NULL", cuStreamSynchronize, nullptr),
    ASK_ON("the captured", cuStreamGetFlags, w.captured, &flags),
    ASK_ON("the captured", cuStreamGetId, w.captured, &id),
    ASK_ON("the captured", cuStreamGetCtx, w.captured, &context),
    ASK_ON("another", cuStreamWaitEvent, w.stream, w.done, 0),
    ASK_ON("the captured", cuStreamWaitEvent, w.captured, w.done, 0),
    ASK_ON("another", cuStreamWriteValue32, w.stream, w.memory, 1, 0),
    ASK_ON("the captured", cuStreamWriteValue32, w.captured, w.memory, 1, 0),
    ASK(cuEventCreate, &event, 0),
    ASK(cuEventDestroy, w.done),
    ASK(cuEventQuery, w.done),
    ASK(cuEventSynchronize, w.done),
    ASK_ON("another", cuEventRecord, w.unrecorded, w.stream),
    ASK_ON("NULL", cuEventRecord, w.unrecorded, nullptr),
    ASK(cuDevicePrimaryCtxRetain, &context, 0),
    ASK(cuDevicePrimaryCtxReset, 0),
};

// The result of the call while `captured` is being captured in this mode, with "!" behind it if the call ends the
// capture.
std::string answer(const Question& q, CUstreamCaptureMode mode, bool by_another_thread) {
  World w;
  MUST(CU(cuStreamBeginCapture)(w.captured, mode));
  CUresult result = CUDA_SUCCESS;
  if (by_another_thread)
    std::thread([&] {
      MUST(CU(cuCtxSetCurrent)(w.context));
      result = q.ask(w);
    }).join();
  else
    result = q.ask(w);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  MUST(CU(cuCtxSetCurrent)(w.context));
  const CUresult asked = CU(cuStreamIsCapturing)(w.captured, &status);
  const CUresult ended = CU(cuStreamEndCapture)(w.captured, &graph);
  std::string text = result == CUDA_SUCCESS ? "ok" : std::to_string(static_cast<int>(result));
  if (asked == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) text += "!";
  if (asked != CUDA_SUCCESS) text += " (then " + std::to_string(static_cast<int>(asked)) + ")";
  if (ended != CUDA_SUCCESS && text.back() != '!') text += " (end " + std::to_string(static_cast<int>(ended)) + ")";
  return text;
}

void print_answers(const Question& q) {
  MUST(CU(cuInit)(0));
  const std::string global = answer(q, CU_STREAM_CAPTURE_MODE_GLOBAL, false),
                    local = answer(q, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false),
                    relaxed = answer(q, CU_STREAM_CAPTURE_MODE_RELAXED, false),
                    beside = answer(q, CU_STREAM_CAPTURE_MODE_GLOBAL, true),
                    beside_local = answer(q, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true);
  std::printf("| `%s` | %s | %s | %s | %s | %s |\n", q.name, global.c_str(), local.c_str(), relaxed.c_str(),
              beside.c_str(), beside_local.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const char* name = "libcuda.so.1";
  for (const std::string_view word : words)
    if (word == "--blocking")
      captured_flags = CU_STREAM_DEFAULT;
    else
      name = word.data();
  if (!probe::open_library(name)) return 1;
  std::printf("| call | global | thread-local | relaxed | another thread, global | another thread, thread-local |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Question& q : questions) probe::ask_alone(q.name, [&] { print_answers(q); });
  return 0;
}
