// The table as data, for code without cuda.h's declarations: names, numbers, ways and manners. Everything in this file
// is a compile-time constant.
//
// ```cpp
// constexpr const api::EntryPoint& launch = api::entry_points[api::line_of("cuLaunchKernel")];
// static_assert(launch.crosses() && launch.manner.submits);
// ```
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "ring/api/arg.h"

namespace api {

// How an entry point is served: the macro of its line in ring/api/driver.def.
enum class Line : std::uint8_t { Call, Custom, Guest, Local, Refused, Variant, Absent };

struct EntryPoint {
  std::string_view name;
  int since;  // CUDA version: 12040 is 12.4
  Line line;
  std::uint16_t id = 0;       // if the call crosses; else 0
  Way way = Way::Local;       // if the call crosses
  Manner manner = {};         // if the call crosses; for Local, the traits
  std::string_view of = {};   // for Variant: the entry point of which this is a version
  std::string_view why = {};  // for Refused and Absent

  constexpr bool crosses() const { return line == Line::Call || line == Line::Custom || line == Line::Guest; }
};

inline constexpr EntryPoint entry_points[] = {
#define CALL(id, fn, since, way, manner, ...) {#fn, since, Line::Call, id, way, manner},
#define CUSTOM(id, fn, since, way, manner, record) {#fn, since, Line::Custom, id, way, manner},
#define GUEST(id, fn, since, way, manner, ...) {#fn, since, Line::Guest, id, way, manner},
#define LOCAL(fn, since, ...) {#fn, since, Line::Local, 0, Way::Local, own __VA_OPT__(| __VA_ARGS__)},
#define REFUSED(fn, since, why) {#fn, since, Line::Refused, 0, Way::Local, {}, {}, why},
#define VARIANT(fn, since, of) {#fn, since, Line::Variant, 0, Way::Local, {}, #of},
#define ABSENT(fn, since, why) {#fn, since, Line::Absent, 0, Way::Local, {}, {}, why},
#include "ring/api/driver.def"
};

// Returns the index of a symbol's line. An unknown symbol does not compile.
consteval std::size_t line_of(std::string_view symbol) {
  std::size_t line = 0;
  while (entry_points[line].name != symbol) ++line;
  return line;
}

// A record that crosses the ring but is no driver call.
struct SessionCall {
  std::string_view name;
  std::uint16_t id;
};
inline constexpr SessionCall session_calls[] = {
#define SESSION(id, name, ...) {#name, id},
#include "ring/api/session.def"
};

}  // namespace api
