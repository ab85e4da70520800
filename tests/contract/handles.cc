// Cases for invalid handles: destroyed handles, handles of another kind, and handles that no call ever returned.
//
// NVIDIA's driver uses a handle as a pointer, so a program with an invalid handle may crash; the simulated GPU aborts
// such a program deliberately. Therefore these cases have no golden answers. Only our guest library runs them: it knows
// the live handles, and returns CUDA_ERROR_INVALID_HANDLE. For contexts the guest library returns
// CUDA_ERROR_INVALID_CONTEXT, and for destroying a context CUDA_ERROR_CONTEXT_IS_DESTROYED, as NVIDIA's driver does.
#include "tests/contract/handles.h"

#include "tests/contract/arrays.h"
#include "tests/contract/batches.h"
#include "tests/contract/graphs.h"

// The name of a case contains the handle's state and the call's name. A test compares these names with
// ring/api/driver.def.
#define ASK(what, call, ...) show(kind + " " what ", " #call, CU(call)(__VA_ARGS__))

namespace contract {
namespace {

template <class Handle>
Handle made_up() {
  return reinterpret_cast<Handle>(std::uintptr_t{0x123450});
}

void with_stream(const std::string& kind, CUstream s) {
  CUstreamCaptureStatus status{};
  CUdeviceptr a = 0;
  CUcontext context = nullptr;
  CUdevice of = 0;
  CUevent event = nullptr;
  char host[16];
  unsigned long long id = 0;
  unsigned flags = 0;
  int priority = 0;
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  CU(cuMemAlloc_v2)(&a, 16);
  CU(cuEventCreate)(&event, 0);
  const CUfunction empty = function_of(load_module(), "empty");
  ASK("stream", cuStreamQuery, s);
  ASK("stream", cuStreamSynchronize, s);
  ASK("stream", cuStreamDestroy_v2, s);
  ASK("stream", cuStreamGetFlags, s, &flags);
  ASK("stream", cuStreamGetPriority, s, &priority);
  ASK("stream", cuStreamGetId, s, &id);
  ASK("stream", cuStreamGetDevice, s, &of);
  ASK("stream", cuStreamGetCtx, s, &context);
  ASK("stream", cuStreamGetCtx_v2, s, &context, nullptr);
  ASK("stream", cuStreamIsCapturing, s, &status);
  ASK("stream", cuStreamWaitEvent, s, event, 0);
  ASK("stream", cuEventRecord, event, s);
  ASK("stream", cuEventRecordWithFlags, event, s, 0);
  ASK("stream", cuMemcpyHtoDAsync_v2, a, host, 16, s);
  ASK("stream", cuMemcpyDtoHAsync_v2, host, a, 16, s);
  ASK("stream", cuMemcpyDtoDAsync_v2, a, a, 16, s);
  ASK("stream", cuMemsetD8Async, a, 0, 16, s);
  ASK("stream", cuMemsetD16Async, a, 0, 8, s);
  ASK("stream", cuMemsetD32Async, a, 0, 4, s);
  ASK("stream", cuStreamWriteValue32_v2, s, a, 0, 0);
  ASK("stream", cuStreamWriteValue64_v2, s, a, 0, 0);
  ASK("stream", cuStreamWaitValue32_v2, s, a, 0, 0);
  ASK("stream", cuStreamWaitValue64_v2, s, a, 0, 0);
  ASK("stream", cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr);
  ASK("stream", cuLaunchCooperativeKernel, empty, 1, 1, 1, 1, 1, 1, 0, s, nullptr);
  config.hStream = s;
  ASK("stream", cuLaunchKernelEx, &config, empty, nullptr, nullptr);
  ASK("stream", cuLaunchGridAsync, empty, 1, 1, s);
  ASK(
      "stream", cuLaunchHostFunc, s, [](void*) {}, nullptr);
  ASK(
      "stream", cuStreamAddCallback, s, [](CUstream, CUresult, void*) {}, nullptr, 0);
}

void with_stream_of_questions(const std::string& kind, CUstream s) {
  CUstreamAttrValue value;
  std::memset(&value, 0, sizeof value);
  value.syncPolicy = CU_SYNC_POLICY_AUTO;
  CUstreamCaptureStatus status{};
  CUgreenCtx green = nullptr;
  ASK("stream", cuStreamGetAttribute, s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
  ASK("stream", cuStreamSetAttribute, s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
  ASK("stream", cuStreamCopyAttributes, s, nullptr);
  ASK("stream", cuStreamCopyAttributes, nullptr, s);
  ASK("stream", cuStreamGetCaptureInfo, s, &status, nullptr);
  ASK("stream", cuStreamGetCaptureInfo_v2, s, &status, nullptr, nullptr, nullptr, nullptr);
  ASK("stream", cuStreamGetCaptureInfo_v3, s, &status, nullptr, nullptr, nullptr, nullptr, nullptr);
  ASK("stream", cuStreamGetGreenCtx, s, &green);
}

// Copies of rows, and copies whose direction follows from the pointers.
void with_stream_of_copies(const std::string& kind, CUstream s) {
  CUdeviceptr a = 0;
  char host[64] = "";
  CU(cuMemAlloc_v2)(&a, 64);
  CUDA_MEMCPY2D rows;
  std::memset(&rows, 0, sizeof rows);
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = a;
  rows.srcPitch = rows.dstPitch = rows.WidthInBytes = rows.Height = 8;
  CUDA_MEMCPY3D planes;
  std::memset(&planes, 0, sizeof planes);
  planes.srcMemoryType = planes.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  planes.srcDevice = planes.dstDevice = a;
  planes.WidthInBytes = planes.srcPitch = planes.dstPitch = 8;
  planes.Height = planes.srcHeight = planes.dstHeight = planes.Depth = 2;
  ASK("stream", cuMemcpyAsync, a, address_of(host), 16, s);
  ASK("stream", cuMemcpy2DAsync_v2, &rows, s);
  ASK("stream", cuMemcpy3DAsync_v2, &planes, s);
  CUcontext here = nullptr;
  CU(cuCtxGetCurrent)(&here);
  ASK("stream", cuMemcpyPeerAsync, a, here, a + 32, here, 16, s);
  ASK("stream", cuMemsetD2D8Async, a, 8, 0, 8, 2, s);
  ASK("stream", cuMemsetD2D16Async, a, 8, 0, 4, 2, s);
  ASK("stream", cuMemsetD2D32Async, a, 8, 0, 2, 2, s);
}

void with_stream_of_memory(const std::string& kind, CUstream s) {
  CUdeviceptr a = 0;
  CUmemoryPool pool = nullptr;
  CU(cuDeviceGetDefaultMemPool)(&pool, device);
  ASK("stream", cuMemAllocAsync, &a, 16, s);
  ASK("stream", cuMemAllocFromPoolAsync, &a, 16, pool, s);
  CU(cuMemAllocAsync)(&a, 16, nullptr);
  ASK("stream", cuMemFreeAsync, a, s);
}

void with_stream_of_managed_memory(const std::string& kind, CUstream s) {
  CUdeviceptr a = 0;
  std::size_t bytes = 64, first = 0;
  CUmemLocation place{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CU(cuMemAllocManaged)(&a, bytes, CU_MEM_ATTACH_GLOBAL);
  ASK("stream", cuMemPrefetchAsync, a, bytes, device, s);
  ASK("stream", cuMemPrefetchAsync_v2, a, bytes, place, 0, s);
  ASK("stream", cuMemPrefetchBatchAsync, &a, &bytes, 1, &place, &first, 1, 0, s);
  ASK("stream", cuMemDiscardBatchAsync, &a, &bytes, 1, 0, s);
  ASK("stream", cuMemDiscardAndPrefetchBatchAsync, &a, &bytes, 1, &place, &first, 1, 0, s);
  ASK("stream", cuStreamAttachMemAsync, s, a, 0, CU_MEM_ATTACH_SINGLE);
}

void with_stream_of_batches(const std::string& kind, CUstream s) {
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 256);
  CUstreamBatchMemOpParams word = write_word(a, 1);
  ASK("stream", cuStreamBatchMemOp_v2, s, 1, &word, 0);
  CUdeviceptr to = a, from = a + 64;
  std::size_t size = 16, first = 0, fail = 0;
  CUmemcpyAttributes attributes = in_stream_order();
  ASK("stream", cuMemcpyBatchAsync, &to, &from, &size, 1, &attributes, &first, 1, &fail, s);
  ASK("stream", cuMemcpyBatchAsync_v2, &to, &from, &size, 1, &attributes, &first, 1, s);
  CUDA_MEMCPY3D_BATCH_OP op = rows(to, from);
  ASK("stream", cuMemcpy3DBatchAsync, 1, &op, &fail, 0, s);
  ASK("stream", cuMemcpy3DBatchAsync_v2, 1, &op, 0, s);
  auto peer = zeroed<CUDA_MEMCPY3D_PEER>();
  peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.dstDevice = to, peer.srcDevice = from;
  peer.WidthInBytes = 16, peer.Height = peer.Depth = 1;
  ASK("stream", cuMemcpy3DPeerAsync, &peer, s);
}

void with_stream_of_graphs(const std::string& kind, CUstream s) {
  const CUgraph graph = make_graph();
  const CUgraphExec exec = instantiated(graph);
  CUgraph captured = nullptr;
  CUgraphExec made = nullptr;
  ASK("stream", cuGraphLaunch, exec, s);
  ASK("stream", cuGraphUpload, exec, s);
  auto parameters = zeroed<CUDA_GRAPH_INSTANTIATE_PARAMS>();
  parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  parameters.hUploadStream = s;
  ASK("stream", cuGraphInstantiateWithParams, &made, graph, &parameters);
  ASK("stream", cuStreamBeginCapture, s);
  ASK("stream", cuStreamBeginCapture_v2, s, CU_STREAM_CAPTURE_MODE_RELAXED);
  ASK("stream", cuStreamBeginCaptureToGraph, s, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
  ASK("stream", cuStreamUpdateCaptureDependencies, s, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  ASK("stream", cuStreamUpdateCaptureDependencies_v2, s, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  ASK("stream", cuStreamEndCapture, s, &captured);
}

void with_event(const std::string& kind, CUevent e) {
  float ms = 0;
  CUevent good = nullptr;
  CU(cuEventCreate)(&good, 0);
  CU(cuEventRecord)(good, nullptr);
  ASK("event", cuEventQuery, e);
  ASK("event", cuEventSynchronize, e);
  ASK("event", cuEventRecord, e, nullptr);
  ASK("event", cuEventRecordWithFlags, e, nullptr, 0);
  ASK("event", cuEventElapsedTime, &ms, e, good);
  ASK("event", cuEventElapsedTime, &ms, good, e);
  ASK("event", cuEventElapsedTime_v2, &ms, e, good);
  ASK("event", cuEventElapsedTime_v2, &ms, good, e);
  ASK("event", cuEventDestroy_v2, e);
  ASK("event", cuStreamWaitEvent, nullptr, e, 0);
  CUcontext here = nullptr;
  CU(cuCtxGetCurrent)(&here);
  ASK("event", cuCtxRecordEvent, here, e);
  ASK("event", cuCtxWaitEvent, here, e);
  CUgreenCtx green = nullptr;
  CU(cuGreenCtxCreate)(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM);
  ASK("event", cuGreenCtxRecordEvent, green, e);
  ASK("event", cuGreenCtxWaitEvent, green, e);
  CU(cuGreenCtxDestroy)(green);
}

void with_event_of_graphs(const std::string& kind, CUevent e) {
  const CUgraph graph = make_graph();
  CUevent good = nullptr;
  CUgraphNode record = nullptr, wait = nullptr, made = nullptr;
  CU(cuEventCreate)(&good, 0);
  CU(cuGraphAddEventRecordNode)(&record, graph, nullptr, 0, good);
  CU(cuGraphAddEventWaitNode)(&wait, graph, nullptr, 0, good);
  const CUgraphExec exec = instantiated(graph);
  ASK("event", cuGraphAddEventRecordNode, &made, graph, nullptr, 0, e);
  ASK("event", cuGraphAddEventWaitNode, &made, graph, nullptr, 0, e);
  ASK("event", cuGraphEventRecordNodeSetEvent, record, e);
  ASK("event", cuGraphEventWaitNodeSetEvent, wait, e);
  ASK("event", cuGraphExecEventRecordNodeSetEvent, exec, record, e);
  ASK("event", cuGraphExecEventWaitNodeSetEvent, exec, wait, e);
}

void with_module(const std::string& kind, CUmodule m) {
  CUfunction f = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0;
  unsigned count = 0;
  ASK("module", cuModuleGetFunction, &f, m, "empty");
  ASK("module", cuModuleGetFunctionCount, &count, m);
  ASK("module", cuModuleEnumerateFunctions, &f, 1, m);
  ASK("module", cuModuleGetGlobal_v2, &a, &size, m, "answer");
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  ASK("module", cuModuleGetTexRef, &texture, m, "texture");
  ASK("module", cuModuleGetSurfRef, &surface, m, "surface");
  ASK("module", cuModuleUnload, m);
}

void with_function(const std::string& kind, CUfunction f) {
  int value = 0, block = 0;
  std::size_t size = 0;
  CUmodule m = nullptr;
  const char* name = nullptr;
  CUfunctionLoadingState state{};
  CUlaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  ASK("function", cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  ASK("function", cuLaunchKernelEx, &config, f, nullptr, nullptr);
  ASK("function", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
  ASK("function", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0);
  ASK("function", cuFuncSetCacheConfig, f, CU_FUNC_CACHE_PREFER_L1);
  ASK("function", cuFuncGetModule, &m, f);
  ASK("function", cuFuncGetName, &name, f);
  ASK("function", cuFuncGetParamInfo, f, 0, &size, &size);
  ASK("function", cuFuncLoad, f);
  ASK("function", cuFuncIsLoaded, &state, f);
  ASK("function", cuOccupancyMaxActiveBlocksPerMultiprocessor, &value, f, 32, 0);
  ASK("function", cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &value, f, 32, 0, 0);
  ASK("function", cuOccupancyMaxPotentialBlockSize, &value, &block, f, nullptr, 0, 0);
  ASK("function", cuOccupancyMaxPotentialBlockSizeWithFlags, &value, &block, f, nullptr, 0, 0, 0);
  ASK("function", cuOccupancyMaxActiveClusters, &value, f, &config);
  ASK("function", cuOccupancyMaxPotentialClusterSize, &value, f, &config);
  ASK("function", cuFuncSetSharedMemConfig, f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
  ASK("function", cuFuncSetBlockShape, f, 1, 1, 1);
  ASK("function", cuFuncSetSharedSize, f, 0);
  ASK("function", cuParamSetSize, f, 0);
  ASK("function", cuParamSeti, f, 0, 0);
  ASK("function", cuParamSetf, f, 0, 0);
  ASK("function", cuParamSetv, f, 0, &value, 4);
  CUtexref reference = nullptr;
  CU(cuTexRefCreate)(&reference);
  ASK("function", cuParamSetTexRef, f, CU_PARAM_TR_DEFAULT, reference);
  ASK("function", cuLaunch, f);
  ASK("function", cuLaunchGrid, f, 1, 1);
  ASK("function", cuLaunchGridAsync, f, 1, 1, nullptr);
  ASK("function", cuLaunchCooperativeKernel, f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr);
  ASK("function", cuOccupancyAvailableDynamicSMemPerBlock, &size, f, 1, 32);
}

void with_library(const std::string& kind, CUlibrary l, CUkernel k) {
  CUkernel found = nullptr;
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CUlibrary of = nullptr;
  CUdeviceptr a = 0;
  std::size_t size = 0;
  unsigned count = 0;
  int value = 0;
  const char* name = nullptr;
  constexpr auto shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  ASK("library", cuLibraryGetKernel, &found, l, "empty");
  ASK("library", cuLibraryGetKernelCount, &count, l);
  ASK("library", cuLibraryEnumerateKernels, &found, 1, l);
  ASK("library", cuLibraryGetModule, &m, l);
  ASK("library", cuLibraryGetGlobal, &a, &size, l, "answer");
  ASK("library", cuLibraryGetManaged, &a, &size, l, "answer");
  void* unified = nullptr;
  ASK("library", cuLibraryGetUnifiedFunction, &unified, l, "empty");
  ASK("library", cuLibraryUnload, l);
  ASK("kernel", cuKernelGetFunction, &f, k);
  ASK("kernel", cuKernelGetLibrary, &of, k);
  ASK("kernel", cuKernelGetName, &name, k);
  ASK("kernel", cuKernelGetParamInfo, k, 0, &size, &size);
  ASK("kernel", cuKernelGetAttribute, &value, shared, k, device);
  ASK("kernel", cuKernelSetAttribute, shared, 0, k, device);
  ASK("kernel", cuKernelSetCacheConfig, k, CU_FUNC_CACHE_PREFER_L1, device);
}

CUsurfref a_surface_reference(CUmodule* of = nullptr) {
  constexpr char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.global .surfref board;\n";
  CUmodule module = nullptr;
  CUsurfref reference = nullptr;
  CU(cuModuleLoadData)(&module, text);
  CU(cuModuleGetSurfRef)(&reference, module, "board");
  if (of != nullptr) *of = module;
  return reference;
}

void with_array(const std::string& kind, CUarray array) {
  auto plain = zeroed<CUDA_ARRAY_DESCRIPTOR>();
  auto d = zeroed<CUDA_ARRAY3D_DESCRIPTOR>();
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  const CUarray good = make_array(described(64));
  CUarray plane = nullptr;
  CUdeviceptr a = 0;
  char host[16];
  CU(cuMemAlloc_v2)(&a, 16);
  ASK("array", cuArrayGetDescriptor_v2, &plain, array);
  ASK("array", cuArray3DGetDescriptor_v2, &d, array);
  ASK("array", cuArrayGetSparseProperties, &sparse, array);
  ASK("array", cuArrayGetMemoryRequirements, &needs, array, device);
  ASK("array", cuArrayGetPlane, &plane, array, 0);
  ASK("array", cuMemcpyDtoA_v2, array, 0, a, 16);
  ASK("array", cuMemcpyAtoD_v2, a, array, 0, 16);
  ASK("array", cuMemcpyHtoA_v2, array, 0, host, 16);
  ASK("array", cuMemcpyAtoH_v2, host, array, 0, 16);
  ASK("array", cuMemcpyAtoA_v2, array, 0, good, 0, 16);
  ASK("array", cuMemcpyAtoA_v2, good, 0, array, 0, 16);
  ASK("array", cuMemcpyHtoAAsync_v2, array, 0, host, 16, nullptr);
  ASK("array", cuMemcpyAtoHAsync_v2, host, array, 0, 16, nullptr);
  ASK("array", cuArrayDestroy, array);
  const auto resource = resource_of(array);
  const auto sampling = zeroed<CUDA_TEXTURE_DESC>();
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  ASK("array", cuTexObjectCreate, &texture, &resource, &sampling, nullptr);
  ASK("array", cuSurfObjectCreate, &surface, &resource);
  CUtexref reference = nullptr;
  CU(cuTexRefCreate)(&reference);
  ASK("array", cuTexRefSetArray, reference, array, CU_TRSA_OVERRIDE_FORMAT);
  ASK("array", cuSurfRefSetArray, a_surface_reference(), array, 0);
}

void with_mipmapped_array(const std::string& kind, CUmipmappedArray array) {
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  CUarray level = nullptr;
  ASK("mipmapped array", cuMipmappedArrayGetLevel, &level, array, 0);
  ASK("mipmapped array", cuMipmappedArrayGetSparseProperties, &sparse, array);
  ASK("mipmapped array", cuMipmappedArrayGetMemoryRequirements, &needs, array, device);
  ASK("mipmapped array", cuMipmappedArrayDestroy, array);
  CUtexref reference = nullptr;
  CU(cuTexRefCreate)(&reference);
  ASK("mipmapped array", cuTexRefSetMipmappedArray, reference, array, CU_TRSA_OVERRIDE_FORMAT);
}

void with_texture_reference(const std::string& kind, CUtexref r) {
  const CUarray array = make_array(described(64));
  const CUmipmappedArray levels = make_mipmapped(described(16, 8), 3);
  const CUfunction empty = function_of(load_module(), "empty");
  CUarray found = nullptr;
  CUmipmappedArray found_levels = nullptr;
  CUarray_format format{};
  CUaddress_mode mode{};
  CUfilter_mode filter{};
  CUdeviceptr a = 0;
  float least = 0, most = 0, border[4] = {};
  int number = 0;
  unsigned flags = 0;
  const CUDA_ARRAY_DESCRIPTOR d{.Width = 4, .Height = 1, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CU(cuMemAlloc_v2)(&a, 512);
  ASK("texture reference", cuTexRefSetArray, r, array, CU_TRSA_OVERRIDE_FORMAT);
  ASK("texture reference", cuTexRefSetMipmappedArray, r, levels, CU_TRSA_OVERRIDE_FORMAT);
  ASK("texture reference", cuTexRefSetAddress_v2, nullptr, r, a, 512);
  ASK("texture reference", cuTexRefSetAddress2D_v2, r, &d, a, 512);
  ASK("texture reference", cuTexRefSetAddress2D_v3, r, &d, a, 512);
  ASK("texture reference", cuTexRefSetFormat, r, CU_AD_FORMAT_FLOAT, 1);
  ASK("texture reference", cuTexRefSetAddressMode, r, 0, CU_TR_ADDRESS_MODE_WRAP);
  ASK("texture reference", cuTexRefSetFilterMode, r, CU_TR_FILTER_MODE_POINT);
  ASK("texture reference", cuTexRefSetMipmapFilterMode, r, CU_TR_FILTER_MODE_POINT);
  ASK("texture reference", cuTexRefSetMipmapLevelBias, r, 1);
  ASK("texture reference", cuTexRefSetMipmapLevelClamp, r, 0, 1);
  ASK("texture reference", cuTexRefSetMaxAnisotropy, r, 1);
  ASK("texture reference", cuTexRefSetBorderColor, r, border);
  ASK("texture reference", cuTexRefSetFlags, r, 0);
  ASK("texture reference", cuTexRefGetAddress_v2, &a, r);
  ASK("texture reference", cuTexRefGetArray, &found, r);
  ASK("texture reference", cuTexRefGetMipmappedArray, &found_levels, r);
  ASK("texture reference", cuTexRefGetAddressMode, &mode, r, 0);
  ASK("texture reference", cuTexRefGetFilterMode, &filter, r);
  ASK("texture reference", cuTexRefGetFormat, &format, &number, r);
  ASK("texture reference", cuTexRefGetMipmapFilterMode, &filter, r);
  ASK("texture reference", cuTexRefGetMipmapLevelBias, &least, r);
  ASK("texture reference", cuTexRefGetMipmapLevelClamp, &least, &most, r);
  ASK("texture reference", cuTexRefGetMaxAnisotropy, &number, r);
  ASK("texture reference", cuTexRefGetBorderColor, border, r);
  ASK("texture reference", cuTexRefGetFlags, &flags, r);
  ASK("texture reference", cuParamSetTexRef, empty, CU_PARAM_TR_DEFAULT, r);
  ASK("texture reference", cuTexRefDestroy, r);
}

void with_surface_reference(const std::string& kind, CUsurfref r) {
  const CUarray array = make_array(described(64, 0, 0, CUDA_ARRAY3D_SURFACE_LDST));
  CUarray found = nullptr;
  ASK("surface reference", cuSurfRefSetArray, r, array, 0);
  ASK("surface reference", cuSurfRefGetArray, &found, r);
}

void with_stream_and_array(const std::string& kind, CUstream s) {
  const CUarray good = make_array(described(64));
  char host[16] = "";
  ASK("stream", cuMemcpyHtoAAsync_v2, good, 0, host, 16, s);
  ASK("stream", cuMemcpyAtoHAsync_v2, host, good, 0, 16, s);
}

void with_link(const std::string& kind, CUlinkState l) {
  void* image = nullptr;
  std::size_t size = 0;
  char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
  ASK("link", cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, text, sizeof text, nullptr, 0, nullptr, nullptr);
  ASK("link", cuLinkAddFile_v2, l, CU_JIT_INPUT_PTX, file_of(text).c_str(), 0, nullptr, nullptr);
  ASK("link", cuLinkComplete, l, &image, &size);
  ASK("link", cuLinkDestroy, l);
}

void with_context(const std::string& kind, CUcontext c) {
  CUdevice of = 0;
  unsigned version = 0;
  unsigned long long id = 0;
  ASK("context", cuCtxSetCurrent, c);
  ASK("context", cuCtxPushCurrent_v2, c);
  ASK("context", cuCtxGetDevice_v2, &of, c);
  ASK("context", cuCtxGetId, c, &id);
  ASK("context", cuCtxGetApiVersion, c, &version);
  ASK("context", cuCtxSynchronize_v2, c);
  ASK("context", cuCtxEnablePeerAccess, c, 0);
  ASK("context", cuCtxDisablePeerAccess, c);
  ASK("context", cuCtxDestroy_v2, c);
  ASK("context", cuCtxDetach, c);
  CUevent event = nullptr;
  CU(cuEventCreate)(&event, 0);
  ASK("context", cuCtxRecordEvent, c, event);
  ASK("context", cuCtxWaitEvent, c, event);
  auto resource = zeroed<CUdevResource>();
  ASK("context", cuCtxGetDevResource, c, &resource, CU_DEV_RESOURCE_TYPE_SM);
  CUcontext here = nullptr;
  CUdeviceptr a = 0;
  CU(cuCtxGetCurrent)(&here);
  CU(cuMemAlloc_v2)(&a, 32);
  ASK("context", cuMemcpyPeer, a, c, a + 16, here, 16);
  ASK("context", cuMemcpyPeer, a, here, a + 16, c, 16);
  ASK("context", cuMemcpyPeerAsync, a, c, a + 16, here, 16, nullptr);
  ASK("context", cuMemcpyPeerAsync, a, here, a + 16, c, 16, nullptr);
  CU(cuEventDestroy_v2)(event);
}

void with_context_of_graphs(const std::string& kind, CUcontext c) {
  const CUgraph graph = make_graph();
  CUcontext here = nullptr;
  CUdeviceptr a = 0;
  CUgraphNode copy = nullptr, fill = nullptr, made = nullptr;
  CUgraphConditionalHandle handle = 0;
  CU(cuCtxGetCurrent)(&here);
  CU(cuMemAlloc_v2)(&a, 32);
  const CUDA_MEMCPY3D copied = copy_of(a, a + 16, 16);
  const CUDA_MEMSET_NODE_PARAMS filled = fill_of(a, 1);
  CU(cuGraphAddMemcpyNode)(&copy, graph, nullptr, 0, &copied, here);
  CU(cuGraphAddMemsetNode)(&fill, graph, nullptr, 0, &filled, here);
  const CUgraphExec exec = instantiated(graph);
  ASK("context", cuGraphAddMemcpyNode, &made, graph, nullptr, 0, &copied, c);
  ASK("context", cuGraphAddMemsetNode, &made, graph, nullptr, 0, &filled, c);
  ASK("context", cuGraphConditionalHandleCreate, &handle, graph, c, 0, 0);
  ASK("context", cuGraphExecMemcpyNodeSetParams, exec, copy, &copied, c);
  ASK("context", cuGraphExecMemsetNodeSetParams, exec, fill, &filled, c);
}

void with_green_context(const std::string& kind, CUgreenCtx g, CUdevResourceDesc d) {
  CUcontext context = nullptr;
  CUgreenCtx made = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  auto resource = zeroed<CUdevResource>();
  unsigned long long id = 0;
  CU(cuEventCreate)(&event, 0);
  ASK("green context", cuCtxFromGreenCtx, &context, g);
  ASK("green context", cuGreenCtxGetDevResource, g, &resource, CU_DEV_RESOURCE_TYPE_SM);
  ASK("green context", cuGreenCtxRecordEvent, g, event);
  ASK("green context", cuGreenCtxWaitEvent, g, event);
  ASK("green context", cuGreenCtxStreamCreate, &stream, g, CU_STREAM_NON_BLOCKING, 0);
  ASK("green context", cuGreenCtxGetId, g, &id);
  ASK("green context", cuGreenCtxDestroy, g);
  if (d != nullptr) ASK("resource description", cuGreenCtxCreate, &made, d, device, CU_GREEN_CTX_DEFAULT_STREAM);
}

void destroyed() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuStreamDestroy_v2)(stream);
  CU(cuEventCreate)(&event, 0);
  CU(cuEventDestroy_v2)(event);
  const CUmodule module = load_module();
  const CUfunction function = function_of(module, "empty");
  CU(cuModuleUnload)(module);
  CU(cuLibraryLoadData)(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "empty");
  CU(cuLibraryUnload)(library);
  const CUarray array = make_array(described(16, 8));
  CU(cuArrayDestroy)(array);
  const CUmipmappedArray levels = make_mipmapped(described(16, 8), 3);
  CUarray level = nullptr;
  CU(cuMipmappedArrayGetLevel)(&level, levels, 1);
  CU(cuMipmappedArrayDestroy)(levels);
  with_array("destroyed", array);
  with_array("destroyed with its owner:", level);
  with_mipmapped_array("destroyed", levels);
  with_stream_and_array("destroyed", stream);
  with_stream("destroyed", stream);
  with_stream_of_copies("destroyed", stream);
  with_stream_of_questions("destroyed", stream);
  with_stream_of_memory("destroyed", stream);
  with_stream_of_batches("destroyed", stream);
  with_stream_of_graphs("destroyed", stream);
  with_stream_of_managed_memory("destroyed", stream);
  with_event("destroyed", event);
  with_event_of_graphs("destroyed", event);
  with_module("destroyed", module);
  with_function("destroyed", function);
  with_library("destroyed", library, kernel);
  CUlinkState link = nullptr;
  CU(cuLinkCreate_v2)(0, nullptr, nullptr, &link);
  CU(cuLinkDestroy)(link);
  with_link("destroyed", link);
  CUtexref texture = nullptr;
  CU(cuTexRefCreate)(&texture);
  CU(cuTexRefDestroy)(texture);
  with_texture_reference("destroyed", texture);
  CUmodule with_surface = nullptr;
  const CUsurfref surface = a_surface_reference(&with_surface);
  CU(cuModuleUnload)(with_surface);
  with_surface_reference("destroyed", surface);
  CUgreenCtx green = nullptr;
  CU(cuGreenCtxCreate)(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM);
  CU(cuGreenCtxDestroy)(green);
  with_green_context("destroyed", green, nullptr);  // null: no call destroys a resource description
}

void of_another_kind() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CU(cuStreamCreate)(&stream, 0);
  CU(cuEventCreate)(&event, 0);
  with_array("another kind's", reinterpret_cast<CUarray>(stream));
  with_mipmapped_array("another kind's", reinterpret_cast<CUmipmappedArray>(event));
  with_stream_and_array("another kind's", reinterpret_cast<CUstream>(event));
  with_event("another kind's", reinterpret_cast<CUevent>(stream));
  with_event_of_graphs("another kind's", reinterpret_cast<CUevent>(stream));
  with_stream("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_copies("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_questions("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_memory("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_batches("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_graphs("another kind's", reinterpret_cast<CUstream>(event));
  with_stream_of_managed_memory("another kind's", reinterpret_cast<CUstream>(event));
  with_module("another kind's", reinterpret_cast<CUmodule>(stream));
  with_function("another kind's", reinterpret_cast<CUfunction>(event));
  with_library("another kind's", reinterpret_cast<CUlibrary>(stream), reinterpret_cast<CUkernel>(event));
  with_link("another kind's", reinterpret_cast<CUlinkState>(stream));
  with_texture_reference("another kind's", reinterpret_cast<CUtexref>(stream));
  with_surface_reference("another kind's", reinterpret_cast<CUsurfref>(stream));
  with_context("another kind's", reinterpret_cast<CUcontext>(stream));
  with_context_of_graphs("another kind's", reinterpret_cast<CUcontext>(stream));
  with_green_context("another kind's", reinterpret_cast<CUgreenCtx>(stream),
                     reinterpret_cast<CUdevResourceDesc>(event));
}

void never_issued() {
  with_array("never issued", made_up<CUarray>());
  with_mipmapped_array("never issued", made_up<CUmipmappedArray>());
  with_stream_and_array("never issued", made_up<CUstream>());
  with_stream("never issued", made_up<CUstream>());
  with_stream_of_copies("never issued", made_up<CUstream>());
  with_stream_of_questions("never issued", made_up<CUstream>());
  with_stream_of_memory("never issued", made_up<CUstream>());
  with_stream_of_batches("never issued", made_up<CUstream>());
  with_stream_of_graphs("never issued", made_up<CUstream>());
  with_stream_of_managed_memory("never issued", made_up<CUstream>());
  with_event("never issued", made_up<CUevent>());
  with_event_of_graphs("never issued", made_up<CUevent>());
  with_module("never issued", made_up<CUmodule>());
  with_function("never issued", made_up<CUfunction>());
  with_library("never issued", made_up<CUlibrary>(), made_up<CUkernel>());
  with_link("never issued", made_up<CUlinkState>());
  with_texture_reference("never issued", made_up<CUtexref>());
  with_surface_reference("never issued", made_up<CUsurfref>());
  with_context("never issued", made_up<CUcontext>());
  with_context_of_graphs("never issued", made_up<CUcontext>());
  with_green_context("never issued", made_up<CUgreenCtx>(), made_up<CUdevResourceDesc>());
}

}  // namespace

const Group wrong_handles{"wrong_handles", Start::InContext, [] {
                            destroyed();
                            of_another_kind();
                            never_issued();
                          }};

}  // namespace contract
