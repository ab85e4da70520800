// Prints what a driver answers to some two hundred calls, good ones and bad ones: a line each, the case and the code's
// name. Run on the simulated GPU, the output is held against tests/data/driver_codes.txt, which is what the real driver
// printed (580.159.04, CUDA 13.0, H200). Values are printed only where they are the API's and not the device's.
//
// Not tried: what the real driver leaves undefined or answers by crashing (destroyed handles, made-up handles).
#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

void* library = nullptr;

template <class F>
F* entry(const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 has no %s.\n", name);
    std::exit(2);
  }
  return reinterpret_cast<F*>(found);
}

#define SPELLED(name) #name
// The call by its symbol, looked up at each use: this program is not about speed.
#define CU(name) (entry<decltype(name)>(SPELLED(name)))

const char* name_of(CUresult code) {
  const char* name = nullptr;
  return CU(cuGetErrorName)(code, &name) == CUDA_SUCCESS ? name : "a code without a name";
}

// A number that the enum has no name for, and cuda.h's C compiler would let pass.
template <class Enum>
Enum odd(int number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

void show(const char* what, CUresult code) { std::printf("%s: %s\n", what, name_of(code)); }
void show(const char* what, long long value) { std::printf("%s: %lld\n", what, value); }

constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.visible .const .align 4 .u32 fixed = 7;
.visible .entry empty() { ret; }
.visible .entry store(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry exact() .reqntid 32, 2, 1 { ret; }
.visible .entry stop() { trap; }
)";

CUdevice device = 0;

void before_init() {
  int value = 0;
  CUcontext context = nullptr;
  show("cuDriverGetVersion before cuInit", CU(cuDriverGetVersion)(&value));
  show("cuDeviceGetCount before cuInit", CU(cuDeviceGetCount)(&value));
  show("cuCtxGetCurrent before cuInit", CU(cuCtxGetCurrent)(&context));
  show("cuCtxSynchronize before cuInit", CU(cuCtxSynchronize)());
  show("cuInit with flags", CU(cuInit)(1));
  show("cuInit", CU(cuInit)(0));
  show("cuInit again", CU(cuInit)(0));
}

void devices() {
  int value = 0;
  char text[64];
  show("cuDeviceGet", CU(cuDeviceGet)(&device, 0));
  show("cuDeviceGet 99", CU(cuDeviceGet)(&device, 99));
  show("cuDeviceGet -1", CU(cuDeviceGet)(&device, -1));
  show("cuDeviceGet null", CU(cuDeviceGet)(nullptr, 0));
  show("cuDeviceGetCount null", CU(cuDeviceGetCount)(nullptr));
  show("cuDeviceGetName null", CU(cuDeviceGetName)(nullptr, 10, device));
  show("cuDeviceGetName length 4", CU(cuDeviceGetName)(text, 4, device));
  show("cuDeviceGetName device 99", CU(cuDeviceGetName)(text, 64, 99));
  show("attribute 0", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(0), device));
  show("attribute 147", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(147), device));
  show("attribute 148", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(148), device));
  show("attribute null", CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  show("attribute device 99", CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  show("unknown attribute, device 99", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(999), 99));
  show("cuDeviceGetByPCIBusId nonsense", CU(cuDeviceGetByPCIBusId)(&device, "nonsense"));
  show("cuDeviceGetByPCIBusId absent", CU(cuDeviceGetByPCIBusId)(&device, "0000:fe:1f.0"));
  show("cuDeviceCanAccessPeer itself", CU(cuDeviceCanAccessPeer)(&value, device, device));
  show("cuDeviceCanAccessPeer itself, answer", value);
  show("P2P attribute of itself",
       CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device));
  const char* string = nullptr;
  show("cuGetErrorName unknown", CU(cuGetErrorName)(odd<CUresult>(12345), &string));
  show("cuGetErrorName unknown, pointer", string == nullptr ? 0 : 1);
}

void no_context() {
  CUcontext context = reinterpret_cast<CUcontext>(1);
  CUdeviceptr address = 0;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  std::size_t size = 0;
  show("cuCtxGetCurrent without one", CU(cuCtxGetCurrent)(&context));
  show("cuCtxGetCurrent without one, answer", context == nullptr ? 0 : 1);
  show("cuCtxGetDevice without context", CU(cuCtxGetDevice)(&device));
  show("cuCtxPopCurrent without context", CU(cuCtxPopCurrent)(&context));
  show("cuCtxSetCurrent null", CU(cuCtxSetCurrent)(nullptr));
  show("cuCtxPushCurrent null", CU(cuCtxPushCurrent)(nullptr));
  show("cuCtxDestroy null", CU(cuCtxDestroy)(nullptr));
  show("cuCtxSynchronize without context", CU(cuCtxSynchronize)());
  show("cuMemAlloc without context", CU(cuMemAlloc)(&address, 16));
  show("cuMemAlloc null without context", CU(cuMemAlloc)(nullptr, 16));
  show("cuMemFree null without context", CU(cuMemFree)(0));
  show("cuMemGetInfo without context", CU(cuMemGetInfo)(&size, &size));
  show("cuModuleLoadData without context", CU(cuModuleLoadData)(&module, ptx));
  show("cuStreamCreate without context", CU(cuStreamCreate)(&stream, 0));
  show("cuStreamSynchronize null without context", CU(cuStreamSynchronize)(nullptr));
  show("cuEventCreate without context", CU(cuEventCreate)(&event, 0));
  show("cuEventRecord null without context", CU(cuEventRecord)(nullptr, nullptr));
  show("cuLaunchKernel null without context",
       CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  unsigned flags = 9;
  int active = 9;
  show("cuDevicePrimaryCtxGetState", CU(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  show("primary context active", active);
  show("cuDevicePrimaryCtxGetState device 99", CU(cuDevicePrimaryCtxGetState)(99, &flags, &active));
  show("cuDevicePrimaryCtxGetState null", CU(cuDevicePrimaryCtxGetState)(device, nullptr, &active));
  show("cuDevicePrimaryCtxRelease not retained", CU(cuDevicePrimaryCtxRelease)(device));
  show("cuDevicePrimaryCtxReset not retained", CU(cuDevicePrimaryCtxReset)(device));
  show("cuDevicePrimaryCtxSetFlags nonsense", CU(cuDevicePrimaryCtxSetFlags)(device, 0x7000));
  show("cuDevicePrimaryCtxSetFlags two schedules", CU(cuDevicePrimaryCtxSetFlags)(device, 3));
  show("cuDevicePrimaryCtxRetain null", CU(cuDevicePrimaryCtxRetain)(nullptr, device));
  show("cuDevicePrimaryCtxRetain device 99", CU(cuDevicePrimaryCtxRetain)(&context, 99));
}

void libraries_without_context() {
  CUlibrary lib = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0, offset = 0;
  unsigned count = 0;
  int value = 0;
  const char* name = nullptr;
  CUlibraryOption option = odd<CUlibraryOption>(99);
  show("cuLibraryLoadData null", CU(cuLibraryLoadData)(nullptr, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryLoadData no code", CU(cuLibraryLoadData)(&lib, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryLoadData unknown option", CU(cuLibraryLoadData)(&lib, ptx, nullptr, nullptr, 0, &option, nullptr, 1));
  show("cuLibraryLoadData", CU(cuLibraryLoadData)(&lib, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, lib, "store"));
  show("cuLibraryGetKernel unknown", CU(cuLibraryGetKernel)(&kernel, lib, "nothing"));
  show("cuLibraryGetKernel null", CU(cuLibraryGetKernel)(nullptr, lib, "store"));
  show("cuLibraryGetKernel no library", CU(cuLibraryGetKernel)(&kernel, nullptr, "store"));
  show("cuLibraryGetKernel no name", CU(cuLibraryGetKernel)(&kernel, lib, nullptr));
  show("cuLibraryGetKernel for later", CU(cuLibraryGetKernel)(&kernel, lib, "store"));
  show("cuLibraryGetKernelCount", CU(cuLibraryGetKernelCount)(&count, lib));
  show("kernels", count);
  show("cuLibraryGetGlobal without context", CU(cuLibraryGetGlobal)(&address, &size, lib, "answer"));
  show("cuLibraryGetManaged not managed", CU(cuLibraryGetManaged)(&address, &size, lib, "answer"));
  show("cuKernelGetFunction without context", CU(cuKernelGetFunction)(&function, kernel));
  show("cuKernelGetName", CU(cuKernelGetName)(&name, kernel));
  show("cuKernelGetParamInfo 1", CU(cuKernelGetParamInfo)(kernel, 1, &offset, &size));
  show("offset of parameter 1", static_cast<long long>(offset));
  show("size of parameter 1", static_cast<long long>(size));
  show("cuKernelGetParamInfo 2", CU(cuKernelGetParamInfo)(kernel, 2, &offset, &size));
  show("cuKernelGetParamInfo no offset", CU(cuKernelGetParamInfo)(kernel, 0, nullptr, &size));
  show("cuKernelGetParamInfo no size", CU(cuKernelGetParamInfo)(kernel, 0, &offset, nullptr));
  show("cuKernelGetAttribute without context",
       CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device));
  show("cuKernelGetAttribute unknown", CU(cuKernelGetAttribute)(&value, odd<CUfunction_attribute>(16), kernel, device));
  show("cuKernelGetAttribute device 99",
       CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 99));
  show("cuLibraryUnload", CU(cuLibraryUnload)(lib));
  show("cuLibraryUnload null", CU(cuLibraryUnload)(nullptr));
  show("cuLibraryLoadFromFile absent",
       CU(cuLibraryLoadFromFile)(&lib, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0));
}

void primary_context() {
  CUcontext first = nullptr, second = nullptr, current = nullptr;
  unsigned flags = 9, version = 0;
  int active = 9;
  std::size_t limit = 0;
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&first, device));
  show("cuDevicePrimaryCtxRetain again", CU(cuDevicePrimaryCtxRetain)(&second, device));
  show("the same handle", first == second ? 1 : 0);
  show("cuCtxGetCurrent after retain", CU(cuCtxGetCurrent)(&current));
  show("current after retain", current == nullptr ? 0 : 1);
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active after one release of two", active);
  show("cuDevicePrimaryCtxSetFlags while active", CU(cuDevicePrimaryCtxSetFlags)(device, CU_CTX_SCHED_YIELD));
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(first));
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active after reset", active);
  CUdeviceptr address = 0;
  show("cuMemAlloc after reset", CU(cuMemAlloc)(&address, 16));
  show("cuCtxSynchronize after reset", CU(cuCtxSynchronize)());
  show("cuCtxGetDevice after reset", CU(cuCtxGetDevice)(&device));
  show("cuDevicePrimaryCtxRetain after reset", CU(cuDevicePrimaryCtxRetain)(&second, device));
  show("the same handle after reset", first == second ? 1 : 0);
  show("cuMemAlloc after reset and retain", CU(cuMemAlloc)(&address, 16));
  show("cuMemFree", CU(cuMemFree)(address));
  show("cuCtxDestroy of a primary context", CU(cuCtxDestroy)(first));
  show("cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(first, &version));
  show("API version", version);
  show("cuCtxGetFlags null", CU(cuCtxGetFlags)(nullptr));
  show("cuCtxGetLimit stack", CU(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE));
  show("cuCtxGetLimit 3", CU(cuCtxGetLimit)(&limit, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
  show("cuCtxGetLimit 99", CU(cuCtxGetLimit)(&limit, odd<CUlimit>(99)));
  show("cuCtxGetLimit null", CU(cuCtxGetLimit)(nullptr, CU_LIMIT_STACK_SIZE));
  show("cuCtxSetLimit stack", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048));
  show("cuCtxSetLimit stack, far too large", CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, std::size_t{1} << 40));
  show("cuCtxSetLimit 99", CU(cuCtxSetLimit)(odd<CUlimit>(99), 1));
  show("cuCtxSetLimit L2 granularity 500", CU(cuCtxSetLimit)(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 500));
  show("cuCtxSetCacheConfig 99", CU(cuCtxSetCacheConfig)(odd<CUfunc_cache>(99)));
  show("cuCtxGetStreamPriorityRange null", CU(cuCtxGetStreamPriorityRange)(nullptr, nullptr));
}

void other_contexts() {
  CUcontext primary = nullptr, made = nullptr, current = nullptr;
  CU(cuCtxGetCurrent)(&primary);
  show("cuCtxCreate flags nonsense", CU(cuCtxCreate)(&made, nullptr, 0x7000, device));
  show("cuCtxCreate device 99", CU(cuCtxCreate)(&made, nullptr, 0, 99));
  show("cuCtxCreate null", CU(cuCtxCreate)(nullptr, nullptr, 0, device));
  show("cuCtxCreate", CU(cuCtxCreate)(&made, nullptr, 0, device));
  CU(cuCtxGetCurrent)(&current);
  show("it is current", current == made ? 1 : 0);
  CUresult elsewhere[2];
  std::thread([&] {
    elsewhere[0] = CU(cuCtxSetCurrent)(made);
    std::thread([&] {
      CU(cuCtxSetCurrent)(made);
      CU(cuCtxDestroy)(made);
    }).join();
    elsewhere[1] = CU(cuCtxSynchronize)();
  }).join();
  show("cuCtxSetCurrent on another thread", elsewhere[0]);
  show("cuCtxSynchronize after a third thread destroyed it", elsewhere[1]);
  CU(cuCtxPopCurrent)(nullptr);
  CU(cuCtxGetCurrent)(&current);
  show("the primary context again", current == primary ? 1 : 0);
  show("cuCtxPushCurrent", CU(cuCtxPushCurrent)(primary));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent)(&current));
  show("cuCtxPopCurrent null", (CU(cuCtxPushCurrent)(primary), CU(cuCtxPopCurrent)(nullptr)));
  unsigned long long id = 0;
  show("cuCtxGetId null context", CU(cuCtxGetId)(nullptr, &id));
  show("cuCtxEnablePeerAccess itself", CU(cuCtxEnablePeerAccess)(primary, 0));
  show("cuCtxDisablePeerAccess itself", CU(cuCtxDisablePeerAccess)(primary));
}

void memory() {
  CUdeviceptr a = 0, base = 0;
  std::size_t pitch = 0, size = 0;
  show("cuMemAlloc 0", CU(cuMemAlloc)(&a, 0));
  show("cuMemAlloc null", CU(cuMemAlloc)(nullptr, 4));
  show("cuMemAlloc absurd", CU(cuMemAlloc)(&a, std::size_t{1} << 60));
  show("cuMemAllocPitch element 3", CU(cuMemAllocPitch)(&a, &pitch, 100, 10, 3));
  show("cuMemAllocPitch width 0", CU(cuMemAllocPitch)(&a, &pitch, 0, 10, 4));
  show("cuMemAllocPitch height 0", CU(cuMemAllocPitch)(&a, &pitch, 100, 0, 4));
  show("cuMemAllocPitch absurd", CU(cuMemAllocPitch)(&a, &pitch, std::size_t{1} << 40, 1 << 30, 4));
  show("cuMemAllocPitch", CU(cuMemAllocPitch)(&a, &pitch, 100, 10, 4));
  show("pitch", static_cast<long long>(pitch));
  show("cuMemFree of that", CU(cuMemFree)(a));
  show("cuMemFree twice", CU(cuMemFree)(a));
  int on_the_stack = 0;
  show("cuMemFree of the stack", CU(cuMemFree)(reinterpret_cast<CUdeviceptr>(&on_the_stack)));
  CU(cuMemAlloc)(&a, 1000);
  show("cuMemFree inside", CU(cuMemFree)(a + 16));
  show("cuMemGetAddressRange inside", CU(cuMemGetAddressRange)(&base, &size, a + 999));
  show("base", static_cast<long long>(base - a));
  show("size", static_cast<long long>(size));
  show("cuMemGetAddressRange of the stack",
       CU(cuMemGetAddressRange)(&base, &size, reinterpret_cast<CUdeviceptr>(&on_the_stack)));
  show("cuMemGetAddressRange nulls", CU(cuMemGetAddressRange)(nullptr, nullptr, a));
  show("cuMemFreeHost of device memory", CU(cuMemFreeHost)(reinterpret_cast<void*>(a)));
  CU(cuMemFree)(a);
  show("cuMemAllocManaged flags 0", CU(cuMemAllocManaged)(&a, 16, 0));
  show("cuMemAllocManaged flags 4", CU(cuMemAllocManaged)(&a, 16, CU_MEM_ATTACH_SINGLE));
  show("cuMemAllocManaged 0", CU(cuMemAllocManaged)(&a, 0, CU_MEM_ATTACH_GLOBAL));
  show("cuMemAllocManaged", CU(cuMemAllocManaged)(&a, 16, CU_MEM_ATTACH_GLOBAL));
  show("cuMemFree managed", CU(cuMemFree)(a));
}

void host_memory() {
  void* p = nullptr;
  CUdeviceptr a = 0;
  unsigned flags = 0;
  const auto map = [](std::size_t size) {
    return static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  };
  show("cuMemHostAlloc 0", CU(cuMemHostAlloc)(&p, 0, 0));
  show("cuMemHostAlloc flags 8", CU(cuMemHostAlloc)(&p, 16, 8));
  show("cuMemHostAlloc null", CU(cuMemHostAlloc)(nullptr, 16, 0));
  show("cuMemHostAlloc absurd", CU(cuMemHostAlloc)(&p, std::size_t{1} << 60, 0));
  show("cuMemHostAlloc", CU(cuMemHostAlloc)(&p, 100, 0));
  show("cuMemHostGetFlags", CU(cuMemHostGetFlags)(&flags, p));
  show("flags", flags);
  show("cuMemHostGetFlags inside", CU(cuMemHostGetFlags)(&flags, static_cast<char*>(p) + 8));
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer)(&a, p, 0));
  show("equal to the host's", a == reinterpret_cast<CUdeviceptr>(p) ? 1 : 0);
  show("cuMemHostGetDevicePointer inside", CU(cuMemHostGetDevicePointer)(&a, static_cast<char*>(p) + 8, 0));
  show("cuMemHostGetDevicePointer flags 1", CU(cuMemHostGetDevicePointer)(&a, p, 1));
  show("cuMemHostUnregister of allocated", CU(cuMemHostUnregister)(p));
  show("cuMemHostRegister of allocated", CU(cuMemHostRegister)(p, 100, 0));
  show("cuMemFreeHost inside", CU(cuMemFreeHost)(static_cast<char*>(p) + 8));
  show("cuMemFree of host memory", CU(cuMemFree)(reinterpret_cast<CUdeviceptr>(p)));
  show("cuMemFreeHost", CU(cuMemFreeHost)(p));
  show("cuMemFreeHost twice", CU(cuMemFreeHost)(p));
  show("cuMemFreeHost null", CU(cuMemFreeHost)(nullptr));
  char* q = map(1 << 16);
  show("cuMemHostGetFlags of pageable", CU(cuMemHostGetFlags)(&flags, q));
  show("cuMemHostGetDevicePointer of pageable", CU(cuMemHostGetDevicePointer)(&a, q, 0));
  show("cuMemHostRegister null", CU(cuMemHostRegister)(nullptr, 16, 0));
  show("cuMemHostRegister 0", CU(cuMemHostRegister)(q + 40000, 0, 0));
  show("cuMemHostRegister flags 0x100", CU(cuMemHostRegister)(q, 4096, 0x100));
  show("cuMemHostRegister", CU(cuMemHostRegister)(q + 100, 5000, 0));
  show("cuMemHostRegister overlapping", CU(cuMemHostRegister)(q + 200, 16, 0));
  show("cuMemHostRegister the same", CU(cuMemHostRegister)(q + 100, 5000, 0));
  show("cuMemHostGetFlags of registered", CU(cuMemHostGetFlags)(&flags, q + 100));
  show("flags of registered", flags);
  show("cuMemHostUnregister inside", CU(cuMemHostUnregister)(q + 200));
  show("cuMemFreeHost of registered", CU(cuMemFreeHost)(q + 100));
  show("cuMemHostUnregister", CU(cuMemHostUnregister)(q + 100));
  show("cuMemHostUnregister twice", CU(cuMemHostUnregister)(q + 100));
  show("cuMemHostUnregister null", CU(cuMemHostUnregister)(nullptr));
  munmap(q, 1 << 16);
  show("cuMemHostRegister of a hole", CU(cuMemHostRegister)(q, 4096, 0));
}

void pointers() {
  CUdeviceptr a = 0, m = 0;
  void* p = nullptr;
  int pageable = 0;
  unsigned type = 9, managed = 9;
  int ordinal = 9;
  CUdeviceptr device_pointer = 9;
  unsigned long long id = 0;
  void* host_pointer = &id;
  CU(cuMemAlloc)(&a, 100);
  CU(cuMemHostAlloc)(&p, 100, 0);
  CU(cuMemAllocManaged)(&m, 100, CU_MEM_ATTACH_GLOBAL);
  const auto stack = reinterpret_cast<CUdeviceptr>(&pageable);
  const auto host = reinterpret_cast<CUdeviceptr>(p);
  show("type of device memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("that type", type);
  show("type of pinned memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host));
  show("that type", type);
  show("type of managed memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m));
  show("that type", type);
  show("managed", CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, m));
  show("type of pageable memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, stack));
  show("host pointer of device memory", CU(cuPointerGetAttribute)(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, a));
  show("buffer id of device memory", CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  show("buffer id of pageable memory", CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, stack));
  show("attribute 99 of device memory", CU(cuPointerGetAttribute)(&id, odd<CUpointer_attribute>(99), a));
  show("attribute into null", CU(cuPointerGetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                      CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* values[] = {&type, &ordinal, &device_pointer, &host_pointer, &managed};
  show("attributes of pageable memory", CU(cuPointerGetAttributes)(5, attributes, values, stack));
  show("its type", type);
  show("its ordinal", ordinal);
  show("its device pointer", static_cast<long long>(device_pointer));
  show("its host pointer", host_pointer == nullptr ? 0 : host_pointer == &pageable ? 1 : 2);
  show("it is managed", managed);
  show("attributes of device memory", CU(cuPointerGetAttributes)(5, attributes, values, a));
  show("its type", type);
  show("its ordinal", ordinal);
  show("its host pointer", host_pointer == nullptr ? 0 : 1);
  show("attributes of managed memory", CU(cuPointerGetAttributes)(5, attributes, values, m));
  show("its type", type);
  show("its host pointer", host_pointer == reinterpret_cast<void*>(m) ? 1 : 0);
  show("no attributes", CU(cuPointerGetAttributes)(0, attributes, values, a));
  show("attributes null", CU(cuPointerGetAttributes)(1, nullptr, values, a));
  CU(cuMemFree)(a);
  CU(cuMemFree)(m);
  CU(cuMemFreeHost)(p);
  show("type of freed memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
}

void copies() {
  CUdeviceptr a = 0, b = 0;
  static char host[8192];
  const auto stack = reinterpret_cast<CUdeviceptr>(host);
  CU(cuMemAlloc)(&a, 4096);
  CU(cuMemAlloc)(&b, 4096);
  show("HtoD", CU(cuMemcpyHtoD)(a, host, 4096));
  show("HtoD 0 bytes", CU(cuMemcpyHtoD)(a, host, 0));
  show("HtoD 0 bytes, nulls", CU(cuMemcpyHtoD)(0, nullptr, 0));
  show("HtoD from null", CU(cuMemcpyHtoD)(a, nullptr, 16));
  show("HtoD to null", CU(cuMemcpyHtoD)(0, host, 16));
  show("HtoD to the stack", CU(cuMemcpyHtoD)(stack, host + 4096, 16));
  show("DtoH from the stack", CU(cuMemcpyDtoH)(host, stack + 4096, 16));
  show("DtoH to null", CU(cuMemcpyDtoH)(nullptr, a, 16));
  show("DtoD", CU(cuMemcpyDtoD)(b, a, 4096));
  show("DtoD from the stack", CU(cuMemcpyDtoD)(b, stack, 16));
  show("DtoD to the stack", CU(cuMemcpyDtoD)(stack, a, 16));
  show("generic HtoH", CU(cuMemcpy)(stack, stack + 4096, 16));
  show("generic HtoD", CU(cuMemcpy)(a, stack, 16));
  show("generic to null", CU(cuMemcpy)(0, a, 16));
  show("HtoDAsync", CU(cuMemcpyHtoDAsync)(a, host, 4096, nullptr));
  show("HtoDAsync to the stack", CU(cuMemcpyHtoDAsync)(stack, host + 4096, 16, nullptr));
  CUDA_MEMCPY2D c;
  std::memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host;
  c.srcPitch = 128;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = a;
  c.dstPitch = 64;
  c.WidthInBytes = 64;
  c.Height = 8;
  show("2D", CU(cuMemcpy2D)(&c));
  show("2D null", CU(cuMemcpy2D)(nullptr));
  c.dstPitch = 32;
  show("2D pitch below the width", CU(cuMemcpy2D)(&c));
  c.dstPitch = 0;
  show("2D pitch 0", CU(cuMemcpy2D)(&c));
  c.Height = 1;
  show("2D pitch 0, one row", CU(cuMemcpy2D)(&c));
  c.dstPitch = 64;
  c.Height = 0;
  show("2D height 0", CU(cuMemcpy2D)(&c));
  c.Height = 8;
  c.WidthInBytes = 0;
  show("2D width 0", CU(cuMemcpy2D)(&c));
  c.WidthInBytes = 64;
  c.srcMemoryType = odd<CUmemorytype>(9);
  show("2D memory type 9", CU(cuMemcpy2D)(&c));
  c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  c.srcDevice = stack;
  show("2D unified", CU(cuMemcpy2D)(&c));
  show("2D unaligned", CU(cuMemcpy2DUnaligned)(&c));
  show("memset", CU(cuMemsetD8)(a, 1, 4096));
  show("memset 0 bytes", CU(cuMemsetD8)(a, 1, 0));
  show("memset 0 bytes of null", CU(cuMemsetD8)(0, 1, 0));
  show("memset D16 misaligned", CU(cuMemsetD16)(a + 1, 1, 4));
  show("memset D32 misaligned", CU(cuMemsetD32)(a + 2, 1, 4));
  show("memset of the stack", CU(cuMemsetD32)(stack, 1, 4));
  show("memset of null", CU(cuMemsetD32)(0, 1, 4));
  show("memset 2D", CU(cuMemsetD2D8)(a, 64, 1, 32, 8));
  show("memset 2D pitch below the width", CU(cuMemsetD2D8)(a, 16, 1, 32, 8));
  show("memset 2D pitch below the width, one row", CU(cuMemsetD2D8)(a, 16, 1, 32, 1));
  show("memset 2D width 0", CU(cuMemsetD2D8)(a, 64, 1, 0, 8));
  show("memset async", CU(cuMemsetD8Async)(a, 1, 16, nullptr));
  CU(cuCtxSynchronize)();
  CU(cuMemFree)(a);
  CU(cuMemFree)(b);
}

void streams_and_events() {
  CUstream stream = nullptr;
  CUevent event = nullptr, other = nullptr;
  unsigned flags = 9;
  int priority = 9;
  float ms = 0;
  CUcontext context = nullptr;
  show("cuStreamCreate null", CU(cuStreamCreate)(nullptr, 0));
  show("cuStreamCreate flags 2", CU(cuStreamCreate)(&stream, 2));
  show("cuStreamCreateWithPriority 5", CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, 5));
  show("cuStreamGetPriority", CU(cuStreamGetPriority)(stream, &priority));
  show("priority 5 became", priority);
  show("cuStreamGetFlags", CU(cuStreamGetFlags)(stream, &flags));
  show("its flags", flags);
  show("cuStreamGetFlags null", CU(cuStreamGetFlags)(stream, nullptr));
  show("cuStreamGetFlags of the legacy stream", CU(cuStreamGetFlags)(nullptr, &flags));
  show("its flags", flags);
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(stream, &context));
  show("cuStreamQuery", CU(cuStreamQuery)(stream));
  show("cuStreamSynchronize legacy", CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
  show("cuStreamSynchronize per thread", CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  show("cuStreamDestroy", CU(cuStreamDestroy)(stream));
  show("cuStreamDestroy null", CU(cuStreamDestroy)(nullptr));
  show("cuStreamDestroy legacy", CU(cuStreamDestroy)(CU_STREAM_LEGACY));
  show("cuStreamDestroy per thread", CU(cuStreamDestroy)(CU_STREAM_PER_THREAD));
  show("cuLaunchHostFunc null", CU(cuLaunchHostFunc)(nullptr, nullptr, nullptr));
  show("cuStreamAddCallback null", CU(cuStreamAddCallback)(nullptr, nullptr, nullptr, 0));
  static CUresult inside[3];
  show("cuLaunchHostFunc", CU(cuLaunchHostFunc)(
                               nullptr,
                               [](void*) {
                                 CUcontext current = nullptr;
                                 CUdeviceptr a = 0;
                                 inside[0] = CU(cuMemAlloc)(&a, 16);
                                 inside[1] = CU(cuCtxGetCurrent)(&current);
                                 inside[2] = CU(cuStreamQuery)(nullptr);
                               },
                               nullptr));
  CU(cuCtxSynchronize)();
  show("cuMemAlloc inside", inside[0]);
  show("cuCtxGetCurrent inside", inside[1]);
  show("cuStreamQuery inside", inside[2]);
  show("cuEventCreate null", CU(cuEventCreate)(nullptr, 0));
  show("cuEventCreate flags 0x10", CU(cuEventCreate)(&event, 0x10));
  show("cuEventCreate interprocess with timing", CU(cuEventCreate)(&event, CU_EVENT_INTERPROCESS));
  show("cuEventCreate", CU(cuEventCreate)(&event, 0));
  CU(cuEventCreate)(&other, CU_EVENT_DISABLE_TIMING);
  show("cuEventQuery not recorded", CU(cuEventQuery)(event));
  show("cuEventSynchronize not recorded", CU(cuEventSynchronize)(event));
  show("cuStreamWaitEvent not recorded", CU(cuStreamWaitEvent)(nullptr, event, 0));
  show("cuStreamWaitEvent flags 4", CU(cuStreamWaitEvent)(nullptr, event, 4));
  show("cuStreamWaitEvent null", CU(cuStreamWaitEvent)(nullptr, nullptr, 0));
  show("cuEventElapsedTime not recorded", CU(cuEventElapsedTime)(&ms, event, event));
  show("cuEventRecord", CU(cuEventRecord)(event, nullptr));
  show("cuEventRecordWithFlags 8", CU(cuEventRecordWithFlags)(event, nullptr, 8));
  show("cuEventRecord null", CU(cuEventRecord)(nullptr, nullptr));
  CU(cuEventRecord)(other, nullptr);
  CU(cuCtxSynchronize)();
  show("cuEventElapsedTime", CU(cuEventElapsedTime)(&ms, event, event));
  show("cuEventElapsedTime null", CU(cuEventElapsedTime)(nullptr, event, event));
  show("cuEventElapsedTime without timing", CU(cuEventElapsedTime)(&ms, event, other));
  show("cuEventQuery null", CU(cuEventQuery)(nullptr));
  show("cuEventDestroy null", CU(cuEventDestroy)(nullptr));
  show("cuEventDestroy", CU(cuEventDestroy)(event));
  CU(cuEventDestroy)(other);
  CUstreamCaptureStatus status;
  show("cuStreamIsCapturing", CU(cuStreamIsCapturing)(nullptr, &status));
  CUstreamCaptureMode mode = odd<CUstreamCaptureMode>(9);
  show("cuThreadExchangeStreamCaptureMode 9", CU(cuThreadExchangeStreamCaptureMode)(&mode));
}

void words() {
  void* p = nullptr;
  CUdeviceptr a = 0;
  int stack = 0;
  CU(cuMemHostAlloc)(&p, 64, 0);
  CU(cuMemAlloc)(&a, 64);
  const auto host = reinterpret_cast<CUdeviceptr>(p);
  std::memset(p, 0, 64);
  show("write 32 to host memory", CU(cuStreamWriteValue32)(nullptr, host, 5, 0));
  show("write 64 to host memory", CU(cuStreamWriteValue64)(nullptr, host + 8, 6, 0));
  show("wait 32", CU(cuStreamWaitValue32)(nullptr, host, 5, CU_STREAM_WAIT_VALUE_EQ));
  show("wait 64", CU(cuStreamWaitValue64)(nullptr, host + 8, 6, CU_STREAM_WAIT_VALUE_GEQ));
  show("write 32 to device memory", CU(cuStreamWriteValue32)(nullptr, a, 5, 0));
  show("write 32 misaligned", CU(cuStreamWriteValue32)(nullptr, host + 1, 5, 0));
  show("write 64 misaligned", CU(cuStreamWriteValue64)(nullptr, host + 4, 5, 0));
  show("write 32 to null", CU(cuStreamWriteValue32)(nullptr, 0, 5, 0));
  show("write 32 to the stack", CU(cuStreamWriteValue32)(nullptr, reinterpret_cast<CUdeviceptr>(&stack), 5, 0));
  show("write 32 flags 2", CU(cuStreamWriteValue32)(nullptr, host, 5, 2));
  show("wait 32 flags 9", CU(cuStreamWaitValue32)(nullptr, host, 5, 9));
  show("after those", CU(cuCtxSynchronize)());
  show("the word", *static_cast<volatile int*>(p));
  CU(cuMemFree)(a);
  CU(cuMemFreeHost)(p);
}

void pools() {
  CUmemoryPool pool = nullptr, same = nullptr;
  CUdeviceptr a = 0;
  unsigned long long value = 0;
  show("default pool", CU(cuDeviceGetDefaultMemPool)(&pool, device));
  show("current pool", CU(cuDeviceGetMemPool)(&same, device));
  show("they are one", pool == same ? 1 : 0);
  show("default pool of device 99", CU(cuDeviceGetDefaultMemPool)(&pool, 99));
  show("destroying the default pool", CU(cuMemPoolDestroy)(pool));
  show("pool attribute", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  show("release threshold", static_cast<long long>(value));
  show("pool attribute 99", CU(cuMemPoolGetAttribute)(pool, odd<CUmemPool_attribute>(99), &value));
  show("pool attribute null", CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr));
  show("cuMemAllocAsync", CU(cuMemAllocAsync)(&a, 100, nullptr));
  show("cuMemAllocAsync 0", CU(cuMemAllocAsync)(&a, 0, nullptr));
  show("cuMemAllocAsync null", CU(cuMemAllocAsync)(nullptr, 100, nullptr));
  show("cuMemAllocAsync absurd", CU(cuMemAllocAsync)(&a, std::size_t{1} << 60, nullptr));
  CU(cuMemAllocAsync)(&a, 100, nullptr);
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemFreeAsync twice", CU(cuMemFreeAsync)(a, nullptr));
  show("cuMemFreeAsync null", CU(cuMemFreeAsync)(0, nullptr));
  CU(cuMemAllocAsync)(&a, 100, nullptr);
  show("cuMemFree of pool memory", CU(cuMemFree)(a));
  CU(cuMemAlloc)(&a, 100);
  show("cuMemFreeAsync of plain memory", CU(cuMemFreeAsync)(a, nullptr));
  show("after those", CU(cuCtxSynchronize)());
}

CUmodule modules() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0, offset = 0;
  unsigned count = 0;
  char log[256] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  constexpr char broken[] = ".version 7.0\n.target sm_70\n.address_size 64\n.entry f() { no such thing; }\n";
  show("cuModuleLoadData null", CU(cuModuleLoadData)(nullptr, ptx));
  show("cuModuleLoadData no image", CU(cuModuleLoadData)(&module, nullptr));
  show("cuModuleLoadData empty", CU(cuModuleLoadData)(&module, ""));
  show("cuModuleLoadData garbage", CU(cuModuleLoadData)(&module, "garbage, not code"));
  show("cuModuleLoadData only a comment", CU(cuModuleLoadData)(&module, "// nothing\n"));
  show("cuModuleLoadData only a version", CU(cuModuleLoadData)(&module, ".version 7.0\n"));
  show("cuModuleLoadData PTX 99.0", CU(cuModuleLoadData)(&module, ".version 99.0\n.target sm_70\n.address_size 64\n"));
  show("cuModuleLoadData no kernels", CU(cuModuleLoadData)(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"));
  show("cuModuleLoadDataEx broken", CU(cuModuleLoadDataEx)(&module, broken, 2, options, values));
  show("it logged", log[0] != 'u' && log[0] != '\0' ? 1 : 0);
  show("the log's size is its length", reinterpret_cast<std::size_t>(values[1]) == std::strlen(log) ? 1 : 0);
  show("cuModuleLoad absent", CU(cuModuleLoad)(&module, "/nonexistent"));
  show("cuModuleLoadData", CU(cuModuleLoadData)(&module, ptx));
  show("cuModuleGetFunction unknown", CU(cuModuleGetFunction)(&function, module, "nothing"));
  show("cuModuleGetFunction null", CU(cuModuleGetFunction)(nullptr, module, "store"));
  show("cuModuleGetFunction no name", CU(cuModuleGetFunction)(&function, module, nullptr));
  show("cuModuleGetFunction no module", CU(cuModuleGetFunction)(&function, nullptr, "store"));
  show("cuModuleGetFunctionCount", CU(cuModuleGetFunctionCount)(&count, module));
  show("functions", count);
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal)(&a, &size, module, "answer"));
  show("its size", static_cast<long long>(size));
  show("cuModuleGetGlobal constant", CU(cuModuleGetGlobal)(&a, &size, module, "fixed"));
  show("cuModuleGetGlobal unknown", CU(cuModuleGetGlobal)(&a, &size, module, "question"));
  show("cuModuleGetGlobal size only", CU(cuModuleGetGlobal)(nullptr, &size, module, "answer"));
  show("cuModuleGetGlobal nulls", CU(cuModuleGetGlobal)(nullptr, nullptr, module, "answer"));
  show("cuModuleGetFunction", CU(cuModuleGetFunction)(&function, module, "store"));
  show("cuFuncGetParamInfo 0", CU(cuFuncGetParamInfo)(function, 0, &offset, &size));
  show("cuFuncGetParamInfo 2", CU(cuFuncGetParamInfo)(function, 2, &offset, &size));
  show("cuModuleUnload null", CU(cuModuleUnload)(nullptr));
  return module;
}

void attributes(CUmodule module) {
  CUfunction function = nullptr;
  int value = 0, blocks = 0;
  const char* name = nullptr;
  CU(cuModuleGetFunction)(&function, module, "bounded");
  show("max threads of a bounded kernel",
       CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  show("they are", value);
  CU(cuModuleGetFunction)(&function, module, "empty");
  show("cuFuncGetAttribute 16", CU(cuFuncGetAttribute)(&value, odd<CUfunction_attribute>(16), function));
  show("cuFuncGetAttribute null", CU(cuFuncGetAttribute)(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  show("cuFuncGetAttribute no function", CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
  show("dynamic shared by default",
       CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  show("it is", value);
  const auto set = CU(cuFuncSetAttribute);
  show("setting it to 1 MiB", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
  show("setting it to -1", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
  show("setting it to 64 KiB", set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
  show("setting the registers", set(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
  show("setting the carveout to 101", set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
  show("setting the carveout to 50", set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  show("cuFuncSetCacheConfig 99", CU(cuFuncSetCacheConfig)(function, odd<CUfunc_cache>(99)));
  show("cuFuncGetName", CU(cuFuncGetName)(&name, function));
  show("occupancy, block of 0", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 0, 0));
  show("occupancy, block of 2000", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 2000, 0));
  show("blocks", blocks);
  show("occupancy, 1 MiB", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 32, 1 << 20));
  show("blocks", blocks);
  show("occupancy null", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(nullptr, function, 32, 0));
}

void launches(CUmodule module) {
  CUfunction empty = nullptr, store = nullptr, bounded = nullptr, exact = nullptr;
  CU(cuModuleGetFunction)(&empty, module, "empty");
  CU(cuModuleGetFunction)(&store, module, "store");
  CU(cuModuleGetFunction)(&bounded, module, "bounded");
  CU(cuModuleGetFunction)(&exact, module, "exact");
  CUdeviceptr out = 0;
  unsigned value = 7;
  CU(cuMemAlloc)(&out, 4);
  void* parameters[] = {&out, &value};
  const auto go = [&](CUfunction f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      void** params, void** extra) {
    return CU(cuLaunchKernel)(f, gx, gy, 1, bx, by, bz, shared, nullptr, params, extra);
  };
  show("launch", go(store, 1, 1, 1, 1, 1, 0, parameters, nullptr));
  show("launch without parameters it has", go(store, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch without parameters it has not", go(empty, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch no function", go(nullptr, 1, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid 0", go(empty, 0, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid y 65536", go(empty, 1, 65536, 1, 1, 1, 0, nullptr, nullptr));
  show("launch grid x 2^31", go(empty, 1U << 31, 1, 1, 1, 1, 0, nullptr, nullptr));
  show("launch block 0", go(empty, 1, 1, 0, 1, 1, 0, nullptr, nullptr));
  show("launch block 1025", go(empty, 1, 1, 1025, 1, 1, 0, nullptr, nullptr));
  show("launch block 64x32", go(empty, 1, 1, 64, 32, 1, 0, nullptr, nullptr));
  show("launch block z 65", go(empty, 1, 1, 1, 1, 65, 0, nullptr, nullptr));
  show("launch bounded 64", go(bounded, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  show("launch bounded 65", go(bounded, 1, 1, 65, 1, 1, 0, nullptr, nullptr));
  show("launch bounded 32x3", go(bounded, 1, 1, 32, 3, 1, 0, nullptr, nullptr));
  show("launch exact 32x2", go(exact, 1, 1, 32, 2, 1, 0, nullptr, nullptr));
  show("launch exact 64", go(exact, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  show("launch exact 32", go(exact, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  show("launch shared 49152", go(bounded, 1, 1, 1, 1, 1, 49152, nullptr, nullptr));
  show("launch shared 49153", go(bounded, 1, 1, 1, 1, 1, 49153, nullptr, nullptr));
  show("launch shared 65536 allowed", go(empty, 1, 1, 1, 1, 1, 65536, nullptr, nullptr));
  struct {
    CUdeviceptr out;
    unsigned value;
  } packed = {out, 9};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  show("launch extra", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  show("launch extra and parameters", go(store, 1, 1, 1, 1, 1, 0, parameters, extra));
  size = 8;
  show("launch extra too short", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  size = 16;
  show("launch extra padded", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  size = 64;
  show("launch extra too long", go(store, 1, 1, 1, 1, 1, 0, nullptr, extra));
  const auto cooperative = CU(cuLaunchCooperativeKernel);
  show("cooperative", cooperative(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  show("cooperative, far too large", cooperative(empty, 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  CUlaunchAttribute attribute;
  std::memset(&attribute, 0, sizeof attribute);
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  show("launchEx", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  show("launchEx null", CU(cuLaunchKernelEx)(nullptr, empty, nullptr, nullptr));
  config.numAttrs = 1;
  show("launchEx attributes null", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  config.attrs = &attribute;
  show("launchEx attribute 0", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  attribute.id = odd<CUlaunchAttributeID>(99);
  show("launchEx attribute 99", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  show("launchEx cooperative", CU(cuLaunchKernelEx)(&config, empty, nullptr, nullptr));
  show("after those", CU(cuCtxSynchronize)());
  unsigned result = 0;
  CU(cuMemcpyDtoH)(&result, out, 4);
  show("stored", result);
  CU(cuMemFree)(out);
  show("cuModuleUnload", CU(cuModuleUnload)(module));
}

// The last group: nothing works after it.
void after_a_fault() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr a = 0, out = 16;
  CUstream stream = nullptr;
  CUevent event = nullptr, recorded = nullptr, kept = nullptr;
  CUcontext context = nullptr;
  std::size_t size = 0;
  unsigned value = 7, type = 0, flags = 0;
  int active = 0;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUlibrary library_before = nullptr, library_after = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUstream old_stream = nullptr;
  CUmemoryPool pool = nullptr;
  void* pinned = nullptr;
  int number = 0;
  float ms = 0;
  unsigned long long id = 0;
  CU(cuMemAlloc)(&a, 16);
  CU(cuMemHostAlloc)(&pinned, 16, 0);
  CU(cuEventCreate)(&recorded, 0);
  CU(cuEventCreate)(&kept, 0);
  CU(cuEventRecord)(kept, nullptr);
  CU(cuStreamCreate)(&old_stream, 0);
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&store, module, "store");
  CU(cuLibraryLoadData)(&library_before, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  void* parameters[] = {&out, &value};
  show("launch that will fail", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("failed: cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("failed: cuStreamSynchronize", CU(cuStreamSynchronize)(nullptr));
  show("failed: cuStreamQuery", CU(cuStreamQuery)(nullptr));
  show("failed: cuStreamCreate", CU(cuStreamCreate)(&stream, 0));
  show("failed: cuEventCreate", CU(cuEventCreate)(&event, 0));
  show("failed: cuEventQuery", CU(cuEventQuery)(recorded));
  show("failed: cuEventRecord", CU(cuEventRecord)(recorded, nullptr));
  show("failed: cuEventDestroy", CU(cuEventDestroy)(recorded));
  show("failed: cuMemAlloc", CU(cuMemAlloc)(&out, 16));
  show("failed: cuMemGetInfo", CU(cuMemGetInfo)(&size, &size));
  show("failed: cuMemGetAddressRange", CU(cuMemGetAddressRange)(&out, &size, a));
  show("failed: cuPointerGetAttribute", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("failed: cuMemcpyDtoH", CU(cuMemcpyDtoH)(&value, a, 4));
  show("failed: cuMemsetD8", CU(cuMemsetD8)(a, 0, 16));
  show("failed: launch of a grid of 0", CU(cuLaunchKernel)(store, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("failed: cuModuleGetFunction", CU(cuModuleGetFunction)(&store, module, "empty"));
  show("failed: cuModuleGetFunction unknown", CU(cuModuleGetFunction)(&store, module, "nothing"));
  show("failed: cuModuleLoadData", CU(cuModuleLoadData)(&module, ptx));
  show("failed: cuMemAlloc 0", CU(cuMemAlloc)(&out, 0));
  show("failed: cuMemFree null", CU(cuMemFree)(0));
  show("failed: cuMemFree", CU(cuMemFree)(a));
  show("failed: cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, library_before, "store"));
  show("failed: cuLibraryGetKernel unknown", CU(cuLibraryGetKernel)(&kernel, library_before, "nothing"));
  show("failed: cuKernelGetFunction", CU(cuKernelGetFunction)(&function, kernel));
  show("failed: cuLibraryLoadData",
       CU(cuLibraryLoadData)(&library_after, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("failed: cuEventElapsedTime", CU(cuEventElapsedTime)(&ms, kept, kept));
  show("failed: cuStreamGetFlags", CU(cuStreamGetFlags)(old_stream, &flags));
  show("failed: cuStreamGetId", CU(cuStreamGetId)(old_stream, &id));
  show("failed: cuStreamWaitEvent", CU(cuStreamWaitEvent)(old_stream, kept, 0));
  show("failed: cuStreamIsCapturing", CU(cuStreamIsCapturing)(old_stream, &capture));
  show("failed: cuStreamDestroy", CU(cuStreamDestroy)(old_stream));
  show("failed: cuStreamDestroy null", CU(cuStreamDestroy)(nullptr));
  show("failed: cuLaunchHostFunc", CU(cuLaunchHostFunc)(
                                       nullptr, [](void*) {}, nullptr));
  show("failed: cuMemHostAlloc", CU(cuMemHostAlloc)(&pinned, 16, 0));
  show("failed: cuMemHostGetFlags", CU(cuMemHostGetFlags)(&flags, pinned));
  show("failed: cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer)(&out, pinned, 0));
  show("failed: cuMemFreeHost", CU(cuMemFreeHost)(pinned));
  show("failed: cuMemAllocAsync", CU(cuMemAllocAsync)(&out, 16, nullptr));
  show("failed: default pool", CU(cuDeviceGetDefaultMemPool)(&pool, device));
  show("failed: cuFuncGetAttribute", CU(cuFuncGetAttribute)(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, store));
  show("failed: occupancy", CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&number, store, 32, 0));
  show("failed: cuDeviceGetAttribute", CU(cuDeviceGetAttribute)(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  show("failed: cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(nullptr, &flags));
  show("failed: cuCtxGetId", CU(cuCtxGetId)(nullptr, &id));
  show("failed: cuCtxGetStreamPriorityRange", CU(cuCtxGetStreamPriorityRange)(&number, nullptr));
  show("failed: cuLibraryUnload", CU(cuLibraryUnload)(library_before));
  show("failed: cuModuleUnload", CU(cuModuleUnload)(module));
  show("failed: cuCtxGetCurrent", CU(cuCtxGetCurrent)(&context));
  show("failed: cuCtxGetDevice", CU(cuCtxGetDevice)(&device));
  show("failed: cuCtxGetFlags", CU(cuCtxGetFlags)(&flags));
  show("failed: cuCtxGetLimit", CU(cuCtxGetLimit)(&size, CU_LIMIT_STACK_SIZE));
  show("failed: cuCtxSetCurrent", CU(cuCtxSetCurrent)(context));
  show("failed: cuDevicePrimaryCtxGetState", CU(cuDevicePrimaryCtxGetState)(device, &flags, &active));
  show("failed: active", active);
  show("failed: cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&context, device));
  show("failed: cuCtxCreate", CU(cuCtxCreate)(&context, nullptr, 0, device));
  show("failed: cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset)(device));
  show("failed: cuDevicePrimaryCtxRetain after reset", CU(cuDevicePrimaryCtxRetain)(&context, device));
  show("failed: cuMemAlloc after reset", CU(cuMemAlloc)(&out, 16));
}

// How a kernel's own end by `trap` and a misaligned store are told.
void after_a_trap() {
  CUmodule module = nullptr;
  CUfunction stop = nullptr;
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&stop, module, "stop");
  show("launch of a trap", CU(cuLaunchKernel)(stop, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  show("trapped", CU(cuCtxSynchronize)());
  show("trapped: cuCtxSynchronize again", CU(cuCtxSynchronize)());
}

void after_misalignment() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr out = 0;
  unsigned value = 1;
  void* parameters[] = {&out, &value};
  CU(cuMemAlloc)(&out, 16);
  ++out;
  CU(cuModuleLoadData)(&module, ptx);
  CU(cuModuleGetFunction)(&store, module, "store");
  show("launch of a misaligned store", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("misaligned", CU(cuCtxSynchronize)());
}

// Each group in a process of its own: what one leaves behind, or how it ends, does not touch the next.
struct Group {
  const char* name;
  void (*run)();
  bool in_context;
};

void code_in_a_context() {
  const CUmodule module = modules();
  attributes(module);
  launches(module);
}

constexpr Group groups[] = {{"before cuInit", before_init, false},
                            {"devices", devices, true},
                            {"no context", no_context, false},
                            {"libraries", libraries_without_context, false},
                            {"primary context", primary_context, false},
                            {"contexts", other_contexts, true},
                            {"memory", memory, true},
                            {"host memory", host_memory, true},
                            {"pointers", pointers, true},
                            {"copies", copies, true},
                            {"streams and events", streams_and_events, true},
                            {"words in memory", words, true},
                            {"pools", pools, true},
                            {"code", code_in_a_context, true},
                            {"after a fault", after_a_fault, true},
                            {"after a trap", after_a_trap, true},
                            {"after a misaligned store", after_misalignment, true}};

void run(const Group& group) {
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s.\n", dlerror());
    _exit(2);
  }
  if (group.run != before_init) CU(cuInit)(0);
  CUcontext context = nullptr;
  if (group.in_context) {
    CU(cuDevicePrimaryCtxRetain)(&context, device);
    CU(cuCtxSetCurrent)(context);
  }
  group.run();
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int result = 0;
  for (const Group& group : groups) {
    std::printf("# %s\n", group.name);
    const pid_t child = fork();
    if (child == 0) {
      run(group);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::printf("# ended by signal %d, code %d\n", WTERMSIG(status), WEXITSTATUS(status));
      result = 1;
    }
  }
  return result;
}
