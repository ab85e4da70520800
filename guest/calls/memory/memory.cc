// Device memory. The driver's allocations must not overlap other memory of this process (guest/marshal/new_memory.h).
//
// The guest may give up waiting for a reply (guest/session/channel.cc). The host then keeps an allocation that the
// program does not know, until the context is reset or the session ends. The worker still executes a free.
#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/memory/arena_block.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "guest/marshal/new_memory.h"
#include "ring/abi/old_sizes.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

CUresult allocate_once(int call, Context& context, const api::AllocateRecord& record, api::AllocateReply& reply) {
  return cross({.call = call, .context = context}, record, {},
               [&](CUresult result, ring::SharedReader& r) {
                 if (result == CUDA_SUCCESS) reply = r.read<api::AllocateReply>();
               })
      .result;
}

// Keeps the driver from choosing an address that collides with the program's memory again. The driver takes small
// allocations from blocks of 2 MiB, first fit. Two colliding allocations may both come from the free rest of one block.
// The fillers allocate that rest, each of half the size of the one before. If a filler does not collide, no colliding
// block has space for another filler of its size.
class Fillers {
 public:
  // Allocates fillers of the next size until one does not collide. An error of the driver appears again in the caller's
  // own allocation.
  void fill(NewMemory& fitting, Context& context) {
    if (bytes_ < least_) return;
    const api::AllocateRecord record{.bytes = bytes_, .height = 0, .element_bytes = 0, .pad = 0};
    api::AllocateReply reply{};
    CUresult result = CUDA_SUCCESS;
    do result = allocate_once(api::id_of::cuMemAlloc_v2, context, record, reply);
    while (result == CUDA_SUCCESS && !fitting.keep(reply.address, reply.bytes, result));
    if (result == CUDA_SUCCESS) fitting.give_back(reply.address, reply.bytes);
    bytes_ /= 2;
  }

 private:
  static constexpr std::uint64_t least_ = 512;  // the driver's granularity
  std::uint64_t bytes_ = NewMemory::least_large / 2;
};

CUresult allocate(int call, Context& context, const api::AllocateRecord& record, api::AllocateReply& reply) {
  Session& s = *session();
  NewMemory fitting(context, api::Range::Stays);
  Fillers fillers;
  CUresult result = allocate_once(call, context, record, reply);
  while (result == CUDA_SUCCESS && !fitting.keep(reply.address, reply.bytes, result)) {
    if (fitting.collided() > 1 && reply.bytes < NewMemory::least_large) fillers.fill(fitting, context);
    result = allocate_once(call, context, record, reply);
  }
  if (result == CUDA_SUCCESS)
    s.memory.addresses.add({.kind = Place::Kind::Device,
                            .start = reply.address,
                            .bytes = reply.bytes,
                            .id = s.memory.next_buffer_id.fetch_add(1, std::memory_order_relaxed),
                            .context = context.home});
  return result;
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuMemAlloc_v2>(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
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
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  api::AllocateReply reply{};
  const CUresult result = allocate(api::id_of::cuMemAllocPitch_v2, *context,
                                   {.bytes = width, .height = height, .element_bytes = element_bytes, .pad = 0}, reply);
  if (result == CUDA_SUCCESS) *address = reply.address, *pitch = reply.pitch;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  Context* context = nullptr;
  // The call needs no current context, since the address determines the device.
  const CUresult entered = enter(context);
  if (entered != CUDA_SUCCESS && entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  if (const CUresult r = disturb_captures(); r != CUDA_SUCCESS) return r;
  if (address == 0) return CUDA_SUCCESS;
  Session& s = *session();
  if (s.memory.addresses.find(address).kind == Place::Kind::Managed)
    return free_block(address, Place::Kind::Managed, context);
  const auto allocation = s.memory.addresses.take(address, Place::Kind::Device);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  const Sent sent =
      cross({.call = api::id_of::cuMemFree_v2, .context = *allocation->context}, api::FreeRecord{.address = address});
  if (sent.use.position == 0) s.memory.addresses.add(*allocation);  // nothing was sent, so the allocation stays
  return sent.result;
}

CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  Context* context = nullptr;
  const CUresult entered = enter(context);
  // The driver checks the version before a fault.
  if (context != nullptr && context->lives() && !cuabi::old_sizes_work_in(context->api_version))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (entered != CUDA_SUCCESS) return entered;
  std::size_t available = 0, all = 0;
  const CUresult result = Stub<api::id_of::cuMemGetInfo_v2>::call(free == nullptr ? nullptr : &available,
                                                                  total == nullptr ? nullptr : &all);
  if (result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = cuabi::size_in_32_bits(available);
  if (total != nullptr) *total = cuabi::size_in_32_bits(all);
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
