// Handlers for special registers whose values change while a lane runs, and for addresses within a frame.
#include <chrono>

#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/windows.h"

namespace simgpu {
namespace {

std::uint64_t value_of(Special which) {
  switch (which) {
    case Special::Clock: return device_clock() & 0xffff'ffff;
    case Special::ClockHigh: return device_clock() >> 32;
    case Special::Clock64: return device_clock();
    default: break;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto time = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  return which == Special::GlobalTimerHigh ? time >> 32 : which == Special::GlobalTimerLow ? time & 0xffff'ffff : time;
}

template <class T>
void put(Ctx& c, const Ins* i, std::uint64_t value) {
  T* d = reinterpret_cast<T*>(c.base[0] + i->d);
  for (unsigned l = 0; l < warp_size; ++l) {
    if ((c.mask >> l & 1) != 0) d[l] = static_cast<T>(value);
  }
}

// A lane that reads the clock in a loop waits for time to pass. The high fuel cost makes the warp switch soon to other
// lanes.
template <class T>
const Ins* read_special(Ctx& c, const Ins* i) {
  c.fuel -= 16;
  put<T>(c, i, value_of(static_cast<Special>(i->count)));
  return i + 1;
}

const Ins* frame_address(Ctx& c, const Ins* i) {
  put<std::uint64_t>(c, i, c.local_base + static_cast<std::uint64_t>(i->imm));
  return i + 1;
}

}  // namespace

std::uint64_t device_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return ticks_per_nanosecond *
         static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

Handlers special_handler(bool wide) {
  return wide ? Handlers{&read_special<std::uint64_t>, &read_special<std::uint64_t>}
              : Handlers{&read_special<std::uint32_t>, &read_special<std::uint32_t>};
}

Handlers frame_address_handler() { return {&frame_address, &frame_address}; }

}  // namespace simgpu
