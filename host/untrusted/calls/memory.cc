// Device memory. CUSTOM because each allocation is remembered: calls outside kernels may name no other addresses.
#include "host/untrusted/calls/calls.h"
#include "ring/api/records.h"

namespace host::calls {
namespace {

CUresult allocated(Request& r, const api::AllocateReply& reply) {
  r.session.ranges.add(reply.address, reply.bytes, 0, ring::device_of(r.header.flags));
  r.out.bytes(&reply, sizeof reply);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAlloc_v2(Request& r) {
  const auto record = r.in.read<api::AllocateRecord>();
  if (!r.complete()) return r.broken();
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto making = r.session.making();
  CUdeviceptr address = 0;
  const CUresult result = r.session.driver.cuMemAlloc_v2(&address, record.bytes);
  return result != CUDA_SUCCESS ? result : allocated(r, {.address = address, .pitch = 0, .bytes = record.bytes});
}

CUresult cuMemAllocPitch_v2(Request& r) {
  const auto record = r.in.read<api::AllocateRecord>();
  if (!r.complete()) return r.broken();
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto making = r.session.making();
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  const CUresult result =
      r.session.driver.cuMemAllocPitch_v2(&address, &pitch, record.bytes, record.height, record.element_bytes);
  if (result != CUDA_SUCCESS) return result;
  return allocated(r, {.address = address, .pitch = pitch, .bytes = pitch * record.height});
}

CUresult cuMemFree_v2(Request& r) {
  const auto record = r.in.read<api::FreeRecord>();
  if (!r.complete()) return r.broken();
  if (!r.session.ranges.remove(record.address)) return CUDA_ERROR_INVALID_VALUE;
  return r.session.driver.cuMemFree_v2(record.address);
}

}  // namespace host::calls
