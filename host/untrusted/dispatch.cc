#include "host/untrusted/dispatch.h"

#include <array>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/guest_line.h"
#include "host/untrusted/counted.h"
#include "host/untrusted/marshal/form.h"
#include "host/untrusted/marshal/unmarshal.h"

namespace host {
namespace {

// Serves a CALL line.
template <int Id>
CUresult accept(Request& r, typename api::Call<Id>::Shape::Pointer function) {
  const auto driver = per_thread_or<Id>(r, function);
  Unmarshal<typename api::Call<Id>::Shape> unmarshal(r);
  return driver == nullptr ? unmarshal.refuse() : unmarshal.run(counting<Id>(r, driver));
}

// Serves a CUSTOM or GUEST line.
template <int Id>
CUresult ask(Request& r, typename CallContext<Id>::Form form, CUresult (*function)(CallContext<Id>&)) {
  CallContext<Id> context(r, form);
  return serve(context, function);
}

constexpr std::array<Handler, api::driver_ids> driver_handlers() {
  std::array<Handler, api::driver_ids> table{};
#define CALL(id, fn, ...) table[id] = [](Request& r) { return accept<id>(r, r.session.driver.fn); };
#define CUSTOM(id, fn, ...) table[id] = [](Request& r) { return ask<id>(r, r.session.driver.fn, calls::fn); };
#define GUEST(id, fn, ...) \
  table[id] = [](Request& r) { return ask<id>(r, r.session.driver.fn, calls::call_by_line<id>); };
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
  return table;
}

constexpr Handler session_handler(int call) {
#define SESSION(id, name, way, record) \
  if (call == id) return [](Request& r) { return ask<id>(r, nullptr, calls::name); };
#include "ring/api/session.def"
  return nullptr;
}

}  // namespace

Handler handler_of(std::uint16_t call) {
  static constexpr auto table = driver_handlers();
  return call < table.size() ? table[call] : session_handler(call);
}

}  // namespace host
