// CALL lines that the session accounts for. Device memory is counted before the driver is called
// (host/session/memory/device_memory.h), and begins and ends of captures are recorded (host/session/graphs/captures.h). CUSTOM
// lines do the same in their own functions.
//
// A function of this file replaces the driver's function: it gets the driver's function and the decoded arguments. If
// there is no memory left, the function returns the driver's error without calling the driver. Additional driver calls
// of the function run in the capture mode RELAXED (host/session/graphs/captures.h).
#pragma once

#include <type_traits>

#include "host/untrusted/marshal/request.h"
#include "ring/api/call.h"

namespace host {

template <int Id>
using CallId = std::integral_constant<int, Id>;

// Makes one driver call in the program's capture mode.
template <class F>
class InProgramsMode;
template <class... P>
class InProgramsMode<CUresult (*)(P...)> {
 public:
  using Pointer = CUresult (*)(P...);
  InProgramsMode(const Request& r, Pointer function) : r_(r), function_(function) {}
  CUresult operator()(P... p) const {
    const ProgramsMode here(r_.session.driver, r_.session.graphs.captures, r_.capture_mode());
    return function_(p...);
  }

 private:
  const Request& r_;
  const Pointer function_;
};
template <int Id>
using DriverCall = InProgramsMode<typename api::Call<Id>::Shape::Pointer>;

namespace counted {

namespace ids = api::id_of;

#define COUNTED(fn, ...) CUresult call(CallId<ids::fn>, Request& r, const DriverCall<ids::fn>& driver, __VA_ARGS__)

COUNTED(cuMemAllocAsync, CUdeviceptr* at, std::size_t bytes, CUstream stream);
COUNTED(cuMemFreeAsync, CUdeviceptr at, CUstream stream);
COUNTED(cuMemAllocFromPoolAsync, CUdeviceptr* at, std::size_t bytes, CUmemoryPool pool, CUstream stream);
COUNTED(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device);
COUNTED(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device);
COUNTED(cuMemGetDefaultMemPool, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
COUNTED(cuMemGetMemPool, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type);
COUNTED(cuMemPoolCreate, CUmemoryPool* pool, const CUmemPoolProps* properties);
COUNTED(cuMemPoolDestroy, CUmemoryPool pool);
COUNTED(cuMemPoolTrimTo, CUmemoryPool pool, std::size_t keep);
COUNTED(cuMemCreate, CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* properties,
        unsigned long long flags);
COUNTED(cuArrayCreate_v2, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description);
COUNTED(cuArray3DCreate_v2, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description);
COUNTED(cuMipmappedArrayCreate, CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels);
COUNTED(cuCtxSetLimit, CUlimit limit, std::size_t value);
COUNTED(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode);
COUNTED(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph, const CUgraphNode* nodes,
        const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode);
COUNTED(cuStreamDestroy_v2, CUstream stream);
COUNTED(cuModuleUnload, CUmodule module);
COUNTED(cuLibraryUnload, CUlibrary library);
COUNTED(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
        unsigned value, unsigned flags);
COUNTED(cuGraphNodeGetType, CUgraphNode node, CUgraphNodeType* type);
COUNTED(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph* graph);
COUNTED(cuGraphInstantiateWithFlags, CUgraphExec* exec, CUgraph graph, unsigned long long flags);
COUNTED(cuMemGetInfo_v2, std::size_t* free, std::size_t* total);

}  // namespace counted

// The driver's function of a call, or the accounting function that replaces it.
template <int Id, class... P>
auto counting(Request& r, CUresult (*function)(P...)) {
  const InProgramsMode<CUresult (*)(P...)> driver(r, function);
  if constexpr (requires(P... p) { counted::call(CallId<Id>(), r, driver, p...); })
    return [&r, driver](P... p) { return counted::call(CallId<Id>(), r, driver, p...); };
  else
    return driver;
}

}  // namespace host
