// The table's ids as numbers and names, without cuda.h. Everything in this file is a compile-time constant.
//
// ```cpp
// #include "ring/layout/layout.h"
// bool serves(const ring::SlotHeader& header, int call) {
//   return api::KnownIds{header.driver_calls, header.session_calls}.contain(call);
// }
// static_assert(api::name_of(0).empty());  // 0 pads a ring
// ```
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "ring/api/entry_points.h"

namespace api {

// Ids are below this number, so that arrays can be indexed by id.
inline constexpr int driver_ids = 512;
inline constexpr int first_session_id = 1000;

// The highest ids that a build knows. A worker writes its highest ids into its slot's header. Ids are assigned in
// order, and a known id stays known (docs/wire-format.md, Versions).
struct KnownIds {
  std::uint16_t driver, session;

  constexpr bool contain(int id) const { return id <= (id < first_session_id ? driver : session); }
};
inline constexpr KnownIds known_ids = [] {
  KnownIds highest{0, 0};
  for (const EntryPoint& e : entry_points) highest.driver = std::max(highest.driver, e.id);
  for (const SessionCall& c : session_calls) highest.session = std::max(highest.session, c.id);
  return highest;
}();
// The ids that a worker knows if it is too old to report its ids.
inline constexpr KnownIds silent_workers_ids{75, 1002};
static_assert(known_ids.driver < driver_ids && known_ids.session >= first_session_id);

// The manner of each driver call, indexed by id. An unused id has the default manner.
inline constexpr auto manners = [] {
  std::array<Manner, driver_ids> all{};
  for (const EntryPoint& e : entry_points) all[e.id] = e.crosses() ? e.manner : all[e.id];
  return all;
}();
constexpr Manner manner_of(int id) {
  return id >= 0 && id < driver_ids ? manners[static_cast<std::size_t>(id)] : Manner{};
}

// Returns the table's name for an id; "" for an unused id.
constexpr std::string_view name_of(int id) {
  for (const EntryPoint& e : entry_points)
    if (e.id == id && id != 0) return e.name;
  for (const SessionCall& c : session_calls)
    if (c.id == id) return c.name;
  return "";
}

}  // namespace api
