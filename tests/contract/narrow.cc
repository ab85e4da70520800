// Cases for CUDA 3's versions of calls, with addresses and sizes of 32 bits, in each kind of context, and for the
// destroying calls of CUDA 3. In a primary context and in a context of a newer cuCtxCreate, all these calls return
// INVALID_CONTEXT; one group makes the calls there. For a context of the old cuCtxCreate, the calls have groups of
// their own.
#include "tests/contract/suite.h"

namespace contract {
namespace {

// Creates a context by the first version of cuCtxCreate, which gives the context API version 3010.
CUcontext old_context() {
  CUcontext made = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate)(&made, 0, device));
  return made;
}

unsigned all_that_fits(std::size_t size) { return size > 0xffffffff ? 0xffffffff : static_cast<unsigned>(size); }

void ask_sizes() {
  unsigned bytes = 0, total = 0;
  std::size_t all = 0;
  CU(cuDeviceTotalMem_v2)(&all, device);
  show("cuDeviceTotalMem", CU(cuDeviceTotalMem)(&bytes, device));
  show_flag("all that 32 bits hold", bytes == all_that_fits(all));
  show("cuDeviceTotalMem null", CU(cuDeviceTotalMem)(nullptr, device));
  show("cuDeviceTotalMem of device 99", CU(cuDeviceTotalMem)(&bytes, 99));
  bytes = 0;
  show("cuMemGetInfo", CU(cuMemGetInfo)(&bytes, &total));
  show_flag("its total is all that 32 bits hold", total == all_that_fits(all));
  show("cuMemGetInfo, only free", CU(cuMemGetInfo)(&bytes, nullptr));
  show("cuMemGetInfo of nothing", CU(cuMemGetInfo)(nullptr, nullptr));
}

void ask_memory() {
  unsigned a = 0, rows = 0, pitch = 0, start = 0, bytes = 0;
  show("cuMemAlloc 0", CU(cuMemAlloc)(&a, 0));
  show("cuMemAlloc null", CU(cuMemAlloc)(nullptr, 4096));
  show("cuMemAlloc", CU(cuMemAlloc)(&a, 4096));
  show("cuMemAllocPitch", CU(cuMemAllocPitch)(&rows, &pitch, 100, 10, 4));
  show("cuMemAllocPitch element of 3", CU(cuMemAllocPitch)(&rows, &pitch, 100, 10, 3));
  show("cuMemGetAddressRange of nothing", CU(cuMemGetAddressRange)(nullptr, nullptr, a));
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange)(&start, &bytes, a));
  show_flag("it starts there", start == a);
  show("cuMemGetAddressRange of what is none", CU(cuMemGetAddressRange)(&start, &bytes, 16));
  show("cuMemFree", CU(cuMemFree)(a));
  show("cuMemFree of rows", CU(cuMemFree)(rows));
  show("cuMemFree of 0", CU(cuMemFree)(0));
  show("cuMemFree of what is none", CU(cuMemFree)(16));
}

void ask_pinned() {
  unsigned a = 0;
  void* p = nullptr;
  show("cuMemAllocHost 0", CU(cuMemAllocHost)(&p, 0));
  show("cuMemAllocHost null", CU(cuMemAllocHost)(nullptr, 4096));
  show("cuMemAllocHost", CU(cuMemAllocHost)(&p, 4096));
  show_flag("there is memory", p != nullptr);
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer)(&a, p, 0));
  show("cuMemHostGetDevicePointer flags 1", CU(cuMemHostGetDevicePointer)(&a, p, 1));
  show("cuMemHostGetDevicePointer null", CU(cuMemHostGetDevicePointer)(nullptr, p, 0));
}

void ask_copies() {
  unsigned a = 0;
  char host[64] = {};
  CU(cuMemAlloc)(&a, 4096);
  show("cuMemcpyHtoD", CU(cuMemcpyHtoD)(a, host, 64));
  show("cuMemcpyDtoH", CU(cuMemcpyDtoH)(host, a, 64));
  show("cuMemcpyDtoD", CU(cuMemcpyDtoD)(a, a, 64));
  show("cuMemcpyHtoD of 0 bytes", CU(cuMemcpyHtoD)(a, host, 0));
  show("cuMemcpyDtoH of 0 bytes", CU(cuMemcpyDtoH)(host, a, 0));
  show("cuMemcpyDtoD of 0 bytes", CU(cuMemcpyDtoD)(a, a, 0));
  show("cuMemcpyHtoDAsync", CU(cuMemcpyHtoDAsync)(a, host, 64, nullptr));
  show("cuMemcpyDtoHAsync", CU(cuMemcpyDtoHAsync)(host, a, 64, nullptr));
  show("cuMemcpyDtoDAsync", CU(cuMemcpyDtoDAsync)(a, a, 64, nullptr));
  show("cuMemcpyHtoDAsync of 0 bytes", CU(cuMemcpyHtoDAsync)(a, host, 0, nullptr));
  show("cuMemcpyDtoHAsync of 0 bytes", CU(cuMemcpyDtoHAsync)(host, a, 0, nullptr));
  show("cuMemcpyDtoDAsync of 0 bytes", CU(cuMemcpyDtoDAsync)(a, a, 0, nullptr));
  show("cuMemcpyHtoD to 0", CU(cuMemcpyHtoD)(0, host, 4));
  show("cuCtxSynchronize after copies", CU(cuCtxSynchronize)());
}

void ask_fills() {
  unsigned a = 0;
  CU(cuMemAlloc)(&a, 4096);
  show("cuMemsetD8", CU(cuMemsetD8)(a, 1, 64));
  show("cuMemsetD16", CU(cuMemsetD16)(a, 1, 32));
  show("cuMemsetD32", CU(cuMemsetD32)(a, 1, 16));
  show("cuMemsetD8 of none", CU(cuMemsetD8)(a, 1, 0));
  show("cuMemsetD16 of none", CU(cuMemsetD16)(a, 1, 0));
  show("cuMemsetD32 of none", CU(cuMemsetD32)(a, 1, 0));
  show("cuMemsetD2D8", CU(cuMemsetD2D8)(a, 64, 1, 16, 4));
  show("cuMemsetD2D16", CU(cuMemsetD2D16)(a, 64, 1, 16, 4));
  show("cuMemsetD2D32", CU(cuMemsetD2D32)(a, 64, 1, 16, 4));
  show("cuMemsetD2D8 of none", CU(cuMemsetD2D8)(a, 64, 1, 0, 0));
  show("cuMemsetD2D16 of none", CU(cuMemsetD2D16)(a, 64, 1, 0, 0));
  show("cuMemsetD2D32 of none", CU(cuMemsetD2D32)(a, 64, 1, 0, 0));
  show("cuMemsetD32 of 0", CU(cuMemsetD32)(0, 1, 1));
  show("cuCtxSynchronize after fills", CU(cuCtxSynchronize)());
}

// Copies of rows within the program's memory, whose addresses always fit.
void ask_rows() {
  const char from[2 * 16 + 1] = "0123456789abcdefghijklmnopqrstuv";
  char to[2 * 16 + 1] = {};
  CUDA_MEMCPY2D_v1 flat{};
  flat.srcMemoryType = flat.dstMemoryType = CU_MEMORYTYPE_HOST;
  flat.srcHost = from, flat.dstHost = to;
  flat.srcPitch = flat.dstPitch = 16;
  flat.srcXInBytes = 1, flat.dstY = 1;
  flat.WidthInBytes = 4, flat.Height = 1;
  show("cuMemcpy2D", CU(cuMemcpy2D)(&flat));
  show("cuMemcpy2DUnaligned", CU(cuMemcpy2DUnaligned)(&flat));
  show("cuMemcpy2DAsync", CU(cuMemcpy2DAsync)(&flat, nullptr));
  CUDA_MEMCPY3D_v1 deep{};
  deep.srcMemoryType = deep.dstMemoryType = CU_MEMORYTYPE_HOST;
  deep.srcHost = from, deep.dstHost = to;
  deep.srcPitch = deep.dstPitch = 16;
  deep.srcHeight = deep.dstHeight = 1;
  deep.srcXInBytes = 8, deep.srcZ = 1;
  deep.WidthInBytes = 4, deep.Height = deep.Depth = 1;
  show("cuMemcpy3D", CU(cuMemcpy3D)(&deep));
  show("cuMemcpy3DAsync", CU(cuMemcpy3DAsync)(&deep, nullptr));
  show("cuCtxSynchronize after rows", CU(cuCtxSynchronize)());
  show_flag("both came", std::memcmp(to, "opqr", 4) == 0 && std::memcmp(to + 16, "1234", 4) == 0);
  flat.srcPitch = 1;
  show("cuMemcpy2D of a pitch that is too small", CU(cuMemcpy2D)(&flat));
  deep.srcMemoryType = odd<CUmemorytype>(9);
  show("cuMemcpy3D of memory type 9", CU(cuMemcpy3D)(&deep));
}

void ask_globals() {
  unsigned a = 0, bytes = 0;
  CUmodule module = nullptr;
  show("cuModuleLoadData", CU(cuModuleLoadData)(&module, ptx));
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal)(&a, &bytes, module, "answer"));
  show("cuModuleGetGlobal, only its bytes", CU(cuModuleGetGlobal)(nullptr, &bytes, module, "answer"));
  show("bytes", bytes);
  show("cuModuleGetGlobal unknown", CU(cuModuleGetGlobal)(&a, &bytes, module, "nothing"));
  show("cuModuleGetGlobal of nothing", CU(cuModuleGetGlobal)(nullptr, nullptr, module, "answer"));
}

void ask_arrays() {
  CUarray flat = nullptr, deep = nullptr;
  char host[64] = {};
  CUDA_ARRAY_DESCRIPTOR_v1 d{.Width = 64, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
  CUDA_ARRAY3D_DESCRIPTOR_v1 d3{
      .Width = 16, .Height = 4, .Depth = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = 0};
  show("cuArrayCreate", CU(cuArrayCreate)(&flat, &d));
  show("cuArray3DCreate", CU(cuArray3DCreate)(&deep, &d3));
  d = {}, d3 = {};
  show_guarded("cuArrayGetDescriptor", [&] { return CU(cuArrayGetDescriptor)(&d, flat); });
  show("width", d.Width);
  show_guarded("cuArray3DGetDescriptor", [&] { return CU(cuArray3DGetDescriptor)(&d3, deep); });
  show("depth", d3.Depth);
  show_guarded("cuMemcpyHtoA", [&] { return CU(cuMemcpyHtoA)(flat, 0, host, 16); });
  show_guarded("cuMemcpyAtoH", [&] { return CU(cuMemcpyAtoH)(host, flat, 0, 16); });
  show_guarded("cuMemcpyAtoA", [&] { return CU(cuMemcpyAtoA)(flat, 32, flat, 0, 16); });
  show_guarded("cuMemcpyHtoAAsync", [&] { return CU(cuMemcpyHtoAAsync)(flat, 0, host, 16, nullptr); });
  show_guarded("cuMemcpyAtoHAsync", [&] { return CU(cuMemcpyAtoHAsync)(host, flat, 0, 16, nullptr); });
  show_guarded("cuMemcpyDtoA of 0 bytes", [&] { return CU(cuMemcpyDtoA)(flat, 0, 0, 0); });
  show_guarded("cuMemcpyAtoD of 0 bytes", [&] { return CU(cuMemcpyAtoD)(0, flat, 0, 0); });
}

void ask_references() {
  unsigned a = 0, bytes = 0;
  const CUDA_ARRAY_DESCRIPTOR_v1 d{.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  show_guarded("cuTexRefSetAddress", [&] { return CU(cuTexRefSetAddress)(&bytes, nullptr, 0, 64); });
  show_guarded("cuTexRefSetAddress2D", [&] { return CU(cuTexRefSetAddress2D)(nullptr, &d, 0, 64); });
  show_guarded("cuTexRefGetAddress", [&] { return CU(cuTexRefGetAddress)(&a, nullptr); });
  show_guarded("cuGraphicsResourceGetMappedPointer",
               [&] { return CU(cuGraphicsResourceGetMappedPointer)(&a, &bytes, nullptr); });
}

void ask_everything() {
  ask_sizes();
  ask_memory();
  ask_pinned();
  ask_copies();
  ask_fills();
  ask_rows();
  ask_globals();
  ask_arrays();
  ask_references();
}

GROUP(narrow_without_context, Initialized) { ask_everything(); }
GROUP(narrow_in_a_primary_context, InContext) { ask_everything(); }

GROUP(narrow_in_a_newer_context, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate_v2", CU(cuCtxCreate_v2)(&made, 0, device));
  ask_everything();
}

GROUP(narrow_sizes, Initialized) {
  old_context();
  ask_sizes();
}
GROUP(narrow_memory, Initialized) {
  old_context();
  ask_memory();
}
GROUP(narrow_pinned, Initialized) {
  old_context();
  ask_pinned();
}
GROUP(narrow_copies, Initialized) {
  old_context();
  ask_copies();
}
GROUP(narrow_fills, Initialized) {
  old_context();
  ask_fills();
}
GROUP(narrow_rows, Initialized) {
  old_context();
  ask_rows();
}
GROUP(narrow_globals, Initialized) {
  old_context();
  ask_globals();
}
GROUP(narrow_arrays, Initialized) {
  old_context();
  ask_arrays();
}
GROUP(narrow_references, Initialized) {
  old_context();
  ask_references();
}

GROUP(narrow_bound_references, Initialized) {
  old_context();
  CUtexref r = nullptr;
  unsigned a = 0, bytes = 9;
  const CUDA_ARRAY_DESCRIPTOR_v1 d{.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  show("cuTexRefCreate", CU(cuTexRefCreate)(&r));
  show("cuTexRefSetAddress", CU(cuTexRefSetAddress)(&bytes, r, 0, 64));
  show("its offset", bytes);
  show("cuTexRefSetAddress, no offset", CU(cuTexRefSetAddress)(nullptr, r, 0, 64));
  show("cuTexRefGetAddress of none", CU(cuTexRefGetAddress)(&a, r));
  show("cuTexRefSetAddress2D", CU(cuTexRefSetAddress2D)(r, &d, 0, 64));
  show("cuTexRefSetAddress2D pitch 100", CU(cuTexRefSetAddress2D)(r, &d, 0, 100));
  show("cuTexRefSetAddress2D no description", CU(cuTexRefSetAddress2D)(r, nullptr, 0, 64));
  CUdeviceptr high = 0;
  CU(cuMemAlloc_v2)(&high, 4096);
  show("cuTexRefSetAddress_v2", CU(cuTexRefSetAddress_v2)(nullptr, r, high, 4096));
  show("cuTexRefGetAddress beyond 4 GiB", CU(cuTexRefGetAddress)(&a, r));
}

// The newer versions of the calls, in a context of the old cuCtxCreate.
GROUP(newer_in_an_old_context, Initialized) {
  old_context();
  CUdeviceptr a = 0;
  std::size_t free = 0, total = 0;
  unsigned word = 7;
  show("cuMemGetInfo_v2", CU(cuMemGetInfo_v2)(&free, &total));
  show("cuMemAlloc_v2", CU(cuMemAlloc_v2)(&a, 4096));
  show("cuMemcpyHtoD_v2", CU(cuMemcpyHtoD_v2)(a, &word, 4));
  show("cuMemsetD32_v2", CU(cuMemsetD32_v2)(a, 5, 1));
  show("cuMemcpyDtoH_v2", CU(cuMemcpyDtoH_v2)(&word, a, 4));
  show("the word", word);
  show("cuMemFree_v2", CU(cuMemFree_v2)(a));
}

// Calls in a context that has been destroyed and is still current. A driver may not survive the next change of that
// context, so each kind of context has a process of its own.
void ask_a_destroyed_context(CUcontext made) {
  unsigned a = 0, total = 0;
  CU(cuCtxDestroy_v2)(made);
  CU(cuCtxSetCurrent)(made);
  show("cuMemAlloc", CU(cuMemAlloc)(&a, 4096));
  show("cuMemGetInfo", CU(cuMemGetInfo)(&a, &total));
  show("cuMemFree of 0", CU(cuMemFree)(0));
}

GROUP(narrow_of_a_destroyed_context_of_cuda_3, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate", CU(cuCtxCreate)(&made, 0, device));
  ask_a_destroyed_context(made);
}

GROUP(narrow_of_a_destroyed_context, Initialized) {
  CUcontext made = nullptr;
  show("cuCtxCreate_v2", CU(cuCtxCreate_v2)(&made, 0, device));
  ask_a_destroyed_context(made);
}

void ask_destroys(const std::string& where) {
  CUstream s = nullptr;
  CUevent e = nullptr;
  CU(cuStreamCreate)(&s, 0);
  CU(cuEventCreate)(&e, 0);
  CU(cuEventRecord)(e, s);
  show(where + ": cuStreamDestroy", CU(cuStreamDestroy)(s));
  show(where + ": cuEventDestroy", CU(cuEventDestroy)(e));
  show(where + ": cuStreamDestroy null", CU(cuStreamDestroy)(nullptr));
  show(where + ": cuEventDestroy null", CU(cuEventDestroy)(nullptr));
}

GROUP(destroying_in_forms_of_cuda_2, InContext) {
  CUcontext made = nullptr;
  ask_destroys("primary");
  CU(cuCtxCreate_v2)(&made, 0, device);
  ask_destroys("newer");
  CU(cuCtxCreate)(&made, 0, device);
  ask_destroys("old");
  CUstream s = nullptr;
  CUevent e = nullptr;
  CU(cuStreamCreate)(&s, 0);
  CU(cuEventCreate)(&e, 0);
  CU(cuCtxPopCurrent_v2)(&made);
  CU(cuCtxPopCurrent_v2)(&made);
  CU(cuCtxPopCurrent_v2)(&made);
  show_flag("none is current", current_context() == nullptr);
  show("without context: cuStreamDestroy", CU(cuStreamDestroy)(s));
  show("without context: cuEventDestroy", CU(cuEventDestroy)(e));
}

GROUP(narrow_proc_address, Loaded) {
  const auto ask = [](const char* name, int version, cuuint64_t flags, const char* form) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const std::string what = std::string(name) + " of " + std::to_string(version) + (flags == 0 ? "" : ", per thread");
    show(what, CU(cuGetProcAddress_v2)(name, &found, version, flags, &status));
    show(what + ", status", status);
    show_flag(what + ": " + form, found != nullptr && found == symbol(form));
  };
  constexpr cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  ask("cuMemAlloc", 2000, 0, "cuMemAlloc");
  ask("cuMemAlloc", 3010, 0, "cuMemAlloc");
  ask("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  ask("cuDeviceTotalMem", 3010, 0, "cuDeviceTotalMem");
  ask("cuMemcpyHtoD", 3010, 0, "cuMemcpyHtoD");
  ask("cuMemcpyHtoD", 3010, per_thread, "cuMemcpyHtoD");
  ask("cuMemcpyHtoD", 7000, per_thread, "cuMemcpyHtoD_v2_ptds");
  ask("cuMemcpyDtoDAsync", 3000, 0, "cuMemcpyDtoDAsync");
  ask("cuMemcpy3D", 3010, 0, "cuMemcpy3D");
  ask("cuArrayCreate", 3010, 0, "cuArrayCreate");
  ask("cuStreamDestroy", 3020, 0, "cuStreamDestroy");
  ask("cuStreamDestroy", 4000, 0, "cuStreamDestroy_v2");
  ask("cuEventDestroy", 3020, 0, "cuEventDestroy");
  ask("cuEventDestroy", 4000, 0, "cuEventDestroy_v2");
}

}  // namespace
}  // namespace contract
