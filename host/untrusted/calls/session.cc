// The session's own calls: hello and the arena's registration.
#include <array>
#include <span>

#include "host/session/output.h"
#include "host/untrusted/calls/calls.h"
#include "ring/api/records.h"

namespace host::calls {
namespace {

// A range of the arena that may be registered: whole huge pages, inside.
bool may_pin(const Session& session, std::uint64_t offset, std::uint64_t bytes) {
  return bytes != 0 && offset % ring::huge_page == 0 && bytes % ring::huge_page == 0 &&
         session.arena(offset, bytes).there();
}

}  // namespace

CUresult hello(Request& r) {
  const auto record = r.in.read<api::HelloRecord>();
  if (!r.complete() || record.window > ring::window_count) return r.broken();
  if (record.pin_bytes != 0 && !may_pin(r.session, 0, record.pin_bytes)) return r.broken();
  if (!r.session.begin_greeting()) return r.broken();
  const bool bound = record.window == ring::window_count || r.session.bind_arena(record.window);
  r.session.end_greeting(bound);
  if (!bound) return CUDA_ERROR_INVALID_ADDRESS_SPACE;
  if (record.pin_bytes != 0) {
    if (const CUresult result = r.session.pin(0, record.pin_bytes); result != CUDA_SUCCESS) return result;
  }
  const api::HelloReply reply{.arena_address = r.session.arena_address()};
  r.out.bytes(&reply, sizeof reply);
  return CUDA_SUCCESS;
}

CUresult pin_arena(Request& r) {
  const auto record = r.in.read<api::PinArenaRecord>();
  if (!r.complete() || !r.session.greeted() || !may_pin(r.session, record.offset, record.bytes)) return r.broken();
  return r.session.pin(record.offset, record.bytes);
}

CUresult join_arena(Request& r) {
  const auto record = r.in.read<api::PinArenaRecord>();
  if (!r.complete() || !r.session.greeted() || !may_pin(r.session, record.offset, record.bytes)) return r.broken();
  return r.session.join_pins(record.offset, record.bytes);
}

CUresult take_output(Request& r) {
  const auto record = r.in.read<api::TakeOutputRecord>();
  if (!r.complete() || record.room > api::max_output) return r.broken();
  std::array<std::byte, api::max_output> text;
  const std::size_t length = host::take_output(std::span(text).first(record.room));
  r.out.slot(length);
  r.out.bytes(text.data(), length);
  const std::size_t diagnosed = host::take_diagnosis(std::span(text).first(api::max_diagnosis));
  if (diagnosed != 0) r.out.slot(diagnosed), r.out.bytes(text.data(), diagnosed);
  if (!output_waiting()) r.session.slot.header()[&ring::SlotHeader::output].store(0, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace host::calls
