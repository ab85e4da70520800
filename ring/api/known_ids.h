// The table's ids as numbers and names, without cuda.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace api {

// Ids are small and dense enough for arrays indexed by them.
inline constexpr int driver_ids = 256;
inline constexpr int first_session_id = 1000;

// The highest ids of this build. A worker says in its slot's header which it knows; ids are given in order, and one
// that is known stays known (docs/wire-format.md, Versions).
struct KnownIds {
  std::uint16_t driver, session;

  constexpr bool contain(int id) const { return id <= (id < first_session_id ? driver : session); }
};
inline constexpr KnownIds known_ids = [] {
  KnownIds highest{0, 0};
  const auto raise = [](std::uint16_t& to, std::uint16_t id) { to = id > to ? id : to; };
#define CALL(id, ...) raise(highest.driver, id);
#define CUSTOM(id, ...) raise(highest.driver, id);
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, ...) raise(highest.session, id);
#include "ring/api/session.def"
  return highest;
}();
// Of a worker from before it said so.
inline constexpr KnownIds silent_workers_ids{75, 1002};
static_assert(known_ids.driver < driver_ids && known_ids.session >= first_session_id);

// What the table calls an id; "" where it has none.
constexpr std::string_view name_of(int id) {
#define CALL(id_, fn, ...) \
  if (id == id_) return #fn;
#define CUSTOM(id_, fn, ...) \
  if (id == id_) return #fn;
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id_, name, ...) \
  if (id == id_) return #name;
#include "ring/api/session.def"
  return "";
}

}  // namespace api
