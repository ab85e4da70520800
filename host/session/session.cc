#include "host/session/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "host/session/output.h"

namespace host {
namespace {

// Returns whether the result means that a capture has prohibited the call. Such a call has had no effect.
bool is_prohibited(CUresult result) {
  return result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || result == CUDA_ERROR_NOT_SUPPORTED;
}

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
      memory(the_driver, serve_options.reserver, telemetry),
      arena(slot_view, serve_options.windows, the_driver, memory.addresses, [this] { return may_make_another(); }),
      code(serve_options.image_bytes),
      contexts(the_driver, serve_options.waits_asleep),
      long_waits(serve_options.wait_spin_ms, serve_options.gpu_use) {
  contexts.count_in(&memory.device, options.context_bytes);
}

void Session::asked_to_free(const Freed& freed, CUresult result) {
  if (!is_prohibited(result)) return memory.ended(freed.range);
  const auto beside = making();
  if (contexts.ended() != freed.contexts_ended)
    return memory.ended(freed.range);  // the allocation may have ended with its context
  memory.addresses.add(freed.range);
}

CUresult Session::create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count) {
  const auto beside = making();
  const ring::MutexLock one(contexts.beginning());
  if (contexts.find(number) != nullptr) {
    protocol.broken.store(true, std::memory_order_relaxed);
    return CUDA_ERROR_UNKNOWN;
  }
  return contexts.create(number, device, flags, sm_count);
}

CUresult Session::create_green_context(unsigned number, CUdevice device, CUdevResourceDesc described, unsigned flags) {
  const auto beside = making();
  const ring::MutexLock one(contexts.beginning());
  if (contexts.find(number) != nullptr) {
    protocol.broken.store(true, std::memory_order_relaxed);
    return CUDA_ERROR_UNKNOWN;
  }
  return contexts.create_green(number, device, described, flags);
}

CUresult Session::destroy_context(unsigned number) {
  const auto alone = ending();
  const ring::MutexLock one(contexts.beginning());
  return contexts.find(number) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : end_context(number);
}

CUresult Session::end_context(unsigned number) {
  end_captures(number);
  memory.kept_graphs.end_all();
  const bool green = contexts.find_green(number) != nullptr;  // a green context has no modules of its own
  const auto device = static_cast<unsigned>(contexts.device_of(number));
  ShadowCopies::Variables variables = green ? ShadowCopies::Variables{} : memory.shadow_copies.take_of_context(number);
  const CUresult result = contexts.destroy(number);
  keep_of_libraries(std::move(variables), device);
  forget(objects.drop_context(number));
  memory.addresses.drop_context(number);
  return result;
}

// A library's managed variables may outlive a context. Only the driver knows which, so each variable keeps its shadow
// copy and range if the driver still finds it. Called under ending(), so no library ends meanwhile.
void Session::keep_of_libraries(ShadowCopies::Variables variables, unsigned device) {
  if (variables.empty()) return;
  contexts.make_current(device);  // the ended context was current in this thread
  std::erase_if(variables, [&](const ShadowCopies::Variable& v) {
    auto* const library = static_cast<CUlibrary>(objects.find(v.owner, api::Handle::Library));
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    const bool is_gone = library == nullptr ||
                         driver.cuLibraryGetManaged(&start, &bytes, library, v.name.c_str()) != CUDA_SUCCESS ||
                         start != v.start || bytes != v.bytes;
    if (is_gone) memory.addresses.drop_global(v.start, v.owner);
    return is_gone;
  });
  memory.shadow_copies.put_back(std::move(variables));
}

CUresult Session::reset(unsigned device) {
  const auto alone = ending();
  const ring::MutexLock one(contexts.beginning());
  const ring::MutexLock pins(arena.registering());
  for (const unsigned green : contexts.greens_of(device)) end_context(green);
  end_captures(device);
  memory.kept_graphs.end_all();
  ShadowCopies::Variables variables = memory.shadow_copies.take_of_context(device);
  if (const CUresult r = contexts.reset(device); r != CUDA_SUCCESS) {
    if (!is_fault(r)) memory.shadow_copies.put_back(std::move(variables));
    return r;
  }
  keep_of_libraries(std::move(variables), device);
  memory.shadow_copies.go_on();
  forget(objects.drop_context(device));
  memory.addresses.drop_context(device);
  if (contexts.find(device) == nullptr) return CUDA_SUCCESS;
  return arena.register_again();
}

void Session::end_capture(CUstream stream) {
  if (const auto began = graphs.captures.over(stream)) end_capture(stream, *began);
}

void Session::end_capture(CUstream stream, CUgraph began) {
  CUgraph graph = nullptr;
  if (driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && began != nullptr) driver.cuGraphDestroy(graph);
  drop_captured(began);
}

// Only the capturing thread can end a capture in its per-thread stream, so such a capture ends with the context.
void Session::end_captures(unsigned context) {
  for (const Captures::Begun& capture : graphs.captures.take_of(context))
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
    memory.forget(id);
    code.forget(id);
  }
}

void Session::note(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  // MPS_RPC_FAILURE means that the MPS server is lost. The driver decides whether the context keeps failing.
  if (is_fault(result) || result == CUDA_ERROR_MPS_RPC_FAILURE)
    telemetry.page().fault.store(static_cast<std::uint32_t>(result), std::memory_order_relaxed);
  if (!is_fault(result)) return;
  memory.shadow_copies.stop();
  offer_output();
  slot.header()[&ring::SlotHeader::fault].store(result, std::memory_order_release);
}

void Session::offer_output() const {
  if (output_waiting()) slot.header()[&ring::SlotHeader::output].store(1, std::memory_order_relaxed);
}

}  // namespace host
