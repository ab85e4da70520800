// Device memory. Calls that make and end allocations are handwritten because the session records each allocation: calls
// outside kernels may use no other addresses.
#include "host/untrusted/calls/calls.h"

namespace host::calls {

CUresult cuMemAlloc_v2(call_of::cuMemAlloc_v2& a) {
  api::AllocateReply reply{.address = 0, .pitch = 0, .bytes = a.record.bytes};
  CUdeviceptr address = 0;
  if (!a.request.may_take(of_allocation(a.record.bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = a.call(&address, a.record.bytes);
  reply.address = address;
  return a.answer(result, reply);
}

CUresult cuMemAllocPitch_v2(call_of::cuMemAllocPitch_v2& a) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  if (!a.request.may_take(of_rows(a.record.bytes, a.record.height))) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = a.call(&address, &pitch, a.record.bytes, a.record.height, a.record.element_bytes);
  return a.answer(result, {{.address = address, .pitch = pitch, .bytes = pitch * a.record.height}});
}

}  // namespace host::calls
