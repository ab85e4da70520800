// Channels reserve, map, unmap and free ranges of addresses (host/session/memory/virtual_ranges.h). This file runs the
// session's own sources with the explorer's locks. A channel's steps follow host/untrusted/marshal/unmarshal.h: lock,
// check, driver, commit.
#include <compare>
#include <iterator>
#include <map>
#include <set>
#include <shared_mutex>

#include "tests/models/explored.h"

namespace std {
using explored_mutex = explore::Mutex;
using explored_shared_mutex = explore::Mutex;
}  // namespace std
#define mutex explored_mutex
#define shared_mutex explored_shared_mutex
// The product's headers, after explored.h:
#include "host/session/memory/addresses.cc"
#include "host/session/memory/virtual_ranges.cc"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

constexpr std::uint64_t start = 1 << 21, length = 1 << 21;

// The world has one range, initially reserved.
struct Channels {
  explicit Channels(bool begins_mapped = false) : is_mapped(begins_mapped) {
    reserved.add(start, length);
    if (begins_mapped) reserved.commit(api::Range::Mapped, start, length);
  }

  void map() {
    call(api::Range::Mapped, [this] { return is_reserved && !std::exchange(is_mapped, true); });
  }
  void unmap() {
    call(api::Range::Unmapped, [this] { return std::exchange(is_mapped, false); });
  }
  void free() {
    call(api::Range::Freed, [this] { return !is_mapped && std::exchange(is_reserved, false); });
  }
  // The driver may reuse the range once the range is free.
  void reserve() {
    const auto held = reserved.changing();
    if (driver_does([this] { return !std::exchange(is_reserved, true); })) reserved.add(start, length);
  }
  void finish() {
    require(addresses.contains(start, length) == is_mapped, "the session names a range that the driver has not mapped");
    require(reserved.holds(start, length) == is_reserved, "the session knows a reservation that the driver has not");
  }

 private:
  template <class Deed>
  void call(api::Range range, Deed deed) {
    const auto held = reserved.changing();
    if (reserved.holds(start, length) && driver_does(deed)) reserved.commit(range, start, length);
  }
  // Another channel may run before and after the driver's operation.
  template <class Deed>
  bool driver_does(Deed deed) {
    step.fetch_add(1, std::memory_order_relaxed);
    const bool success = deed();
    step.fetch_add(1, std::memory_order_relaxed);
    return success;
  }

  bool is_reserved = true, is_mapped;  // the driver's state
  std::atomic<std::uint32_t> step{0};
  host::Addresses addresses;
  host::VirtualRanges reserved{addresses};
};

struct Mapped : Channels {
  Mapped() : Channels(true) {}
};

}  // namespace

std::vector<Scenario> address_scenarios() {
  return {
      {"addresses", "map and unmap",
       [](Options o) { return bounded<Channels, &Channels::map, &Channels::unmap>(o, 4); }},
      {"addresses", "unmap, map and free",
       [](Options o) { return bounded<Mapped, &Mapped::unmap, &Mapped::map, &Mapped::free>(o, 3); }},
      {"addresses", "free, reserve and map",
       [](Options o) { return bounded<Channels, &Channels::free, &Channels::reserve, &Channels::map>(o, 3); }},
  };
}

}  // namespace explore
