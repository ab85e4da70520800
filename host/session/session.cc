#include "host/session/session.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "host/session/output.h"

namespace host {
namespace {

// The answers to a call that a capture prohibits, and that has done nothing.
bool is_prohibited(CUresult result) {
  return result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || result == CUDA_ERROR_NOT_SUPPORTED;
}

constexpr unsigned register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

}  // namespace

bool is_fault(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED: return true;
    default: return false;
  }
}

Session::Session(ring::SlotView slot_view, const Driver& the_driver, const ServeOptions& serve_options)
    : slot(slot_view),
      driver(the_driver),
      options(serve_options),
      telemetry(serve_options.telemetry),
      device_memory(serve_options.lender, telemetry.page().taken),
      pools(the_driver, device_memory),
      addresses(&telemetry.page().device_memory, [this](const Range& allocation) { ended(allocation); }),
      contexts(the_driver, serve_options.waits_asleep),
      long_waits(serve_options.wait_spin_ms, serve_options.gpu_use),
      image_budget(serve_options.image_bytes),
      arena_(slot_view.base() + ring::arena_offset),
      arena_bytes_(slot_view.arena_bytes()),
      windows_(serve_options.windows) {
  device_memory.when_full([this](unsigned device) { pools.trim(device); });
  contexts.count_in(&device_memory, options.context_bytes);
}

bool Session::bind_arena(std::uint64_t window) {
  if (window >= ring::window_count || arena_bytes_ > ring::window_bytes) return false;
  // The move may only replace the worker's own empty reservation, which was made before the driver was loaded. A move
  // that fails has still removed the reservation, and another mapping may take its place. So each window is tried once.
  const std::uint32_t bit = 1u << window;
  if ((windows_ & bit) == 0) return false;
  windows_ &= ~bit;
  void* wanted = reinterpret_cast<void*>(ring::window_address(static_cast<std::uint32_t>(window)));
  void* at =
      mremap(arena_.load(std::memory_order_relaxed), arena_bytes_, arena_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
  if (at == MAP_FAILED) return false;
  arena_.store(static_cast<std::byte*>(at), std::memory_order_relaxed);
  return true;
}

CUresult Session::pin(std::uint64_t offset, std::uint64_t bytes) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!ring::wrong(ring::Mutant::pinning_unlocked)) lock.lock();
  if (!addresses.pinned_in(arena_address() + offset, bytes).empty()) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  return register_arena(offset, bytes);
}

CUresult Session::join_pins(std::uint64_t offset, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const std::uint64_t start = arena_address() + offset;
  const std::vector<Range> inside = addresses.pinned_in(start, bytes);
  for (const Range& piece : inside)
    if (piece.start < start || piece.start + piece.bytes > start + bytes)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  // The driver waits here until the GPU no longer uses the memory.
  for (const Range& piece : inside)
    if (const CUresult r = unregister_arena(piece.start - arena_address(), piece.bytes); r != CUDA_SUCCESS) return r;
  return register_arena(offset, bytes);
}

// Under mutex_.
CUresult Session::register_arena(std::uint64_t offset, std::uint64_t bytes) {
  if (!may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = driver.cuMemHostRegister_v2(arena(offset, bytes).for_driver(), bytes, register_flags);
  if (result != CUDA_SUCCESS) return result;
  addresses.add({.start = arena_address() + offset, .bytes = bytes, .kind = Memory::Pinned});
  return result;
}

// Under mutex_. The session forgets the registration even if the driver reports an error: in a context with a fault the
// driver reports only the fault.
CUresult Session::unregister_arena(std::uint64_t offset, std::uint64_t bytes) {
  addresses.unpin(arena_address() + offset);
  return driver.cuMemHostUnregister(arena(offset, bytes).for_driver());
}

void Session::asked_to_free(const Freed& freed, CUresult result) {
  if (!is_prohibited(result)) return ended(freed.range);
  const auto beside = making();
  if (contexts.ended() != freed.contexts_ended) return ended(freed.range);  // it may have gone with its context
  addresses.add(freed.range);
}

CUresult Session::create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count) {
  const auto beside = making();
  std::lock_guard lock(mutex_);
  if (contexts.find(number) != nullptr) return broken.store(true, std::memory_order_relaxed), CUDA_ERROR_UNKNOWN;
  return contexts.create(number, device, flags, sm_count);
}

CUresult Session::create_green_context(unsigned number, CUdevice device, CUdevResourceDesc described, unsigned flags) {
  const auto beside = making();
  std::lock_guard lock(mutex_);
  if (contexts.find(number) != nullptr) return broken.store(true, std::memory_order_relaxed), CUDA_ERROR_UNKNOWN;
  return contexts.create_green(number, device, described, flags);
}

CUresult Session::destroy_context(unsigned number) {
  const auto alone = ending();
  std::lock_guard lock(mutex_);
  return contexts.find(number) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : end_context(number);
}

CUresult Session::end_context(unsigned number) {
  end_captures(number);
  const bool green = contexts.find_green(number) != nullptr;  // it has no modules of its own
  const auto device = static_cast<unsigned>(contexts.device_of(number));
  Mirrors::Variables variables = green ? Mirrors::Variables{} : mirrors.take_of_context(number);
  const CUresult result = contexts.destroy(number);
  keep_of_libraries(std::move(variables), device);
  forget(objects.drop_context(number));
  addresses.drop_context(number);
  return result;
}

// A library's managed variables outlive contexts, but where, only the driver knows: mirror and range stay if the variable
// does. Under ending(), so no library ends meanwhile.
void Session::keep_of_libraries(Mirrors::Variables variables, unsigned device) {
  if (variables.empty()) return;
  contexts.make_current(device);  // the one that has ended was current
  std::erase_if(variables, [&](const Mirrors::Variable& v) {
    auto* const library = static_cast<CUlibrary>(objects.find(v.owner, api::Handle::Library));
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    const bool is_gone = library == nullptr ||
                         driver.cuLibraryGetManaged(&start, &bytes, library, v.name.c_str()) != CUDA_SUCCESS ||
                         start != v.start || bytes != v.bytes;
    if (is_gone) addresses.drop_global(v.start, v.owner);
    return is_gone;
  });
  mirrors.put_back(std::move(variables));
}

CUresult Session::reset(unsigned device) {
  const auto alone = ending();
  std::lock_guard lock(mutex_);
  for (const unsigned green : contexts.greens_of(device)) end_context(green);
  end_captures(device);
  Mirrors::Variables variables = mirrors.take_of_context(device);
  if (const CUresult r = contexts.reset(device); r != CUDA_SUCCESS) {
    if (!is_fault(r)) mirrors.put_back(std::move(variables));
    return r;
  }
  keep_of_libraries(std::move(variables), device);
  mirrors.go_on();
  forget(objects.drop_context(device));
  addresses.drop_context(device);
  if (contexts.find(device) == nullptr) return CUDA_SUCCESS;
  for (const Range& piece : addresses.pinned_in(arena_address(), arena_bytes_))
    if (const CUresult r = driver.cuMemHostRegister_v2(arena(piece.start - arena_address(), piece.bytes).for_driver(),
                                                       piece.bytes, register_flags);
        r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
      return r;
  return CUDA_SUCCESS;
}

void Session::end_capture(CUstream stream) {
  if (const auto began = captures.over(stream)) end_capture(stream, *began);
}

void Session::end_capture(CUstream stream, CUgraph began) {
  CUgraph graph = nullptr;
  if (driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && began != nullptr) driver.cuGraphDestroy(graph);
  drop_captured(began);
}

// Of another thread's per-thread stream only that thread can end the capture: it ends with the context.
void Session::end_captures(unsigned context) {
  for (const Captures::Begun& capture : captures.take_of(context))
    if (capture.stream == CU_STREAM_PER_THREAD)
      drop_captured(capture.graph);
    else
      end_capture(capture.stream, capture.graph);
}

void Session::drop_captured(CUgraph graph) {
  if (graph == nullptr) return;
  if (const std::uint64_t id = objects.id_of(api::Handle::Graph, graph)) forget(objects.drop_with_owned(id));
}

void Session::forget(const std::vector<std::uint64_t>& gone) {
  for (const std::uint64_t id : gone) {
    addresses.drop_owned(id);
    charges.drop(id);
    images.drop(id);
    links.drop(id);
  }
}

void Session::note(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  // The latter says that the MPS server is lost; whether it stays the context's answer is the driver's to say.
  if (is_fault(result) || result == CUDA_ERROR_MPS_RPC_FAILURE)
    telemetry.page().fault.store(static_cast<std::uint32_t>(result), std::memory_order_relaxed);
  if (!is_fault(result)) return;
  mirrors.stop();
  offer_output();
  slot.header()[&ring::SlotHeader::fault].store(result, std::memory_order_release);
}

void Session::offer_output() const {
  if (output_waiting()) slot.header()[&ring::SlotHeader::output].store(1, std::memory_order_relaxed);
}

}  // namespace host
