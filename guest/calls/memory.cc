// Device memory. CUSTOM because an address of device memory must mean nothing else in this process: each allocation's
// range is reserved here, and made again elsewhere where something of the program lies in it.
//
// An allocation whose reply was not waited for to the end (guest/session/channel.cc) stays on the host, unknown to the
// program, until a reset of the context or the session's end; a free whose reply was not has been done, or will be.
#include <array>

#include "guest/calls/calls.h"
#include "guest/log.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

// More collisions in a row than this and the address space is fuller than the driver can work around.
constexpr std::size_t max_collisions = 64;

Sent send_free(Context& context, std::uint64_t address) {
  const api::FreeRecord record{.address = address};
  return cross({.call = api::id_of::cuMemFree_v2, .context = context}, record);
}

CUresult allocate_once(int call, Context& context, const api::AllocateRecord& record, api::AllocateReply& reply) {
  return cross({.call = call, .context = context}, record, {},
               [&](CUresult result, ring::SharedReader& r) {
                 if (result == CUDA_SUCCESS) reply = r.read<api::AllocateReply>();
               })
      .result;
}

CUresult allocate(int call, Context& context, const api::AllocateRecord& record, api::AllocateReply& reply) {
  Session& s = *session();
  // A block that collides is kept until a place fits, so that the driver does not offer it again.
  std::array<std::uint64_t, max_collisions> collided;
  std::size_t collisions = 0;
  CUresult result = CUDA_SUCCESS;
  for (;;) {
    result = allocate_once(call, context, record, reply);
    if (result != CUDA_SUCCESS || s.addresses.reserve(reply.address, reply.bytes)) break;
    log(Level::Debug, "device memory at %llx collides with a mapping of this process",
        static_cast<unsigned long long>(reply.address));
    collided[collisions++] = reply.address;
    if (collisions == max_collisions) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
  }
  for (std::size_t i = 0; i < collisions; ++i) send_free(context, collided[i]);
  if (result == CUDA_SUCCESS)
    s.addresses.add({.kind = Place::Kind::Device,
                     .start = reply.address,
                     .bytes = reply.bytes,
                     .id = s.next_buffer_id.fetch_add(1, std::memory_order_relaxed),
                     .context = &context});
  return result;
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuMemAlloc_v2>(context); r != CUDA_SUCCESS) return r;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  api::AllocateReply reply{};
  const CUresult result =
      allocate(api::id_of::cuMemAlloc_v2, *context, {.bytes = bytes, .height = 0, .element_bytes = 0, .pad = 0}, reply);
  if (result == CUDA_SUCCESS) *address = reply.address;
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element_bytes) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuMemAllocPitch_v2>(context); r != CUDA_SUCCESS) return r;
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  api::AllocateReply reply{};
  const CUresult result = allocate(api::id_of::cuMemAllocPitch_v2, *context,
                                   {.bytes = width, .height = height, .element_bytes = element_bytes, .pad = 0}, reply);
  if (result == CUDA_SUCCESS) *address = reply.address, *pitch = reply.pitch;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  Context* context = nullptr;
  const CUresult entered = enter(context);  // an address tells its device: no context is needed
  if (entered != CUDA_SUCCESS && entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  if (address == 0) return CUDA_SUCCESS;
  Session& s = *session();
  const auto allocation = s.addresses.take(address, Place::Kind::Device);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  const Sent sent = send_free(*allocation->context, address);
  if (sent.use.position == 0) s.addresses.add(*allocation);  // nothing was sent: it may be freed later
  return sent.result;
}

}  // namespace guest::calls
