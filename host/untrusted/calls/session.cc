// The session's own calls: hello, the arena's registration, shadow copies of managed variables, excluded ranges, and
// the output of kernels.
#include <array>
#include <span>

#include "host/session/output.h"
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/marshal/captured.h"

namespace host::calls {
namespace {

// Returns whether a range of the arena may be registered: the range is not empty, and is inside the arena.
bool may_pin(const Session& session, std::uint64_t offset, std::uint64_t bytes) {
  return bytes != 0 && session.arena.bytes_at(offset, bytes).there();
}

}  // namespace

CUresult hello(call_of::hello& a) {
  Session& session = a.session();
  const auto& [window, pin_bytes] = a.record;
  if (pin_bytes != 0 && !may_pin(session, 0, pin_bytes)) return a.request.broken();
  if (!session.protocol.begin_greeting()) return a.request.broken();
  const bool bound = window == ring::window_count || session.arena.bind(window);
  session.protocol.end_greeting(bound);
  if (!bound) return CUDA_ERROR_INVALID_ADDRESS_SPACE;
  const CUresult result = pin_bytes != 0 ? session.arena.pin(0, pin_bytes) : CUDA_SUCCESS;
  return a.answer(result, {.arena_address = session.arena.address()});
}

CUresult switch_off(call_of::switch_off& a) {
  a.session().memory.kept_graphs.switch_off(a.record.switches);
  return CUDA_SUCCESS;
}

CUresult pin_arena(call_of::pin_arena& a) {
  const auto& [offset, bytes] = a.record;
  if (!a.session().protocol.greeted() || !may_pin(a.session(), offset, bytes)) return a.request.broken();
  return a.session().arena.pin(offset, bytes);
}

CUresult join_arena(call_of::join_arena& a) {
  const auto& [offset, bytes] = a.record;
  if (!a.session().protocol.greeted() || !may_pin(a.session(), offset, bytes)) return a.request.broken();
  return a.session().arena.join_pins(offset, bytes);
}

CUresult shadow_variable(call_of::shadow_variable& a) {
  const auto beside = a.session().making();
  return a.session().memory.shadow_copies.add(a.record.address, a.record.arena, a.arena());
}

// The ranges need not be trusted, because a guest's ranges can only harm its own session.
CUresult exclude(call_of::exclude& a) {
  const auto& [start, bytes] = a.record;
  const bool fits = start != 0 && start < api::end_of_addresses && bytes <= api::end_of_addresses - start;
  if (!a.session().protocol.greeted() || !fits || bytes == 0 || bytes > api::max_excluded_range)
    return a.request.broken();
  return a.session().memory.excluded.add(start, bytes);
}

CUresult disturb(call_of::disturb& a) {
  if (!a.session().graphs.captures.any()) return CUDA_SUCCESS;
  const ProgramsMode here(a.driver(), a.session().graphs.captures, a.request.capture_mode());
  return a.driver().cuMemFree_v2(0);
}

// The legacy stream waits for all streams of the context that are not CU_STREAM_NON_BLOCKING. While any of these
// streams is captured, the driver prohibits waits for the legacy stream and for the per-thread streams of other
// threads.
CUresult await_context(call_of::await_context& a) {
  Session& session = a.session();
  if (!session.graphs.captures.any()) return a.driver().cuCtxSynchronize();
  for (void* const handle : session.objects.handles_in(a.request.context, api::Handle::Stream)) {
    const auto stream = static_cast<CUstream>(handle);
    if (is_captured(a.driver(), stream)) continue;
    if (const CUresult waited = a.driver().cuStreamSynchronize(stream); is_fault(waited)) return waited;
  }
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  const bool may_wait = a.driver().cuStreamIsCapturing(CU_STREAM_LEGACY, &status) == CUDA_SUCCESS;
  return may_wait ? a.driver().cuStreamSynchronize(CU_STREAM_LEGACY) : CUDA_SUCCESS;
}

CUresult take_output(call_of::take_output& a) {
  ring::Writer& out = a.request.out;
  std::array<std::byte, api::max_output> text;
  const std::size_t length = host::take_output(std::span(text).first(a.record.room));
  a.answer(CUDA_SUCCESS, {.length = 0}, std::span(text).first(length));
  const std::size_t diagnosed = host::take_diagnosis(std::span(text).first(api::max_diagnosis));
  if (diagnosed != 0) out.slot(diagnosed), out.bytes(text.data(), diagnosed);
  if (!output_waiting()) a.session().slot.header()[&ring::SlotHeader::output].store(0, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace host::calls
