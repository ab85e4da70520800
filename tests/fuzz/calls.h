// Every call of the table as a record's parts, made from the lines themselves: a call that is added is fuzzed without a
// word here. A CALL line tells its parameters, a CUSTOM or SESSION line its record, whose list tells the rest.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ring/api/call.h"
#include "tests/fuzz/by_list.h"

namespace fuzz {

// One parameter of a CALL line.
struct Field {
  api::Arg arg;
  api::Handle handle = api::Handle::None;  // of the parameter, or of what it points to
  std::uint8_t bits = 64;                  // of a number
  std::uint32_t size = 1;                  // of what a pointer points to
};

struct CallLine {
  std::uint16_t id;
  std::string_view name;
  bool waits;
  std::vector<Field> fields;                      // CALL
  void (*by_list)(Choices&, Payload&) = nullptr;  // CUSTOM, SESSION
  bool gives_memory = false;                      // its reply begins with an address
  api::Handle finds = api::Handle::None;          // its reply begins with the id of what the driver has found
};

template <class P>
constexpr Field field_of(api::Arg arg) {
  Field f{.arg = arg};
  if constexpr (std::is_pointer_v<P> && api::handle_of<P> == api::Handle::None) {
    f.size = sizeof(api::Pointee<P>);
    f.handle = api::handle_of<api::Pointee<P>>;
  } else {
    f.handle = api::handle_of<P>;
    f.bits = static_cast<std::uint8_t>(8 * sizeof(P));
  }
  if (arg.kind != api::Handle::None) f.handle = arg.kind;
  return f;
}

template <class S>
struct FieldsOf;
template <class... P, api::Arg... A>
struct FieldsOf<api::Shape<CUresult(P...), A...>> {
  static std::vector<Field> get() { return {field_of<P>(A)...}; }
};

template <int id>
CallLine line_of(std::string_view name, bool waits) {
  using Record = typename api::Call<id>::Record;
  return {.id = id,
          .name = name,
          .waits = waits,
          .fields = {},
          .by_list = [](Choices& choices, Payload& to) { ByList<Record>(choices, to).write(); },
          .gives_memory = gives_memory<typename api::ReplyOf<Record>::Type>()};
}

inline std::vector<CallLine> all_calls() {
  std::vector<CallLine> lines;
#define CALL(id, fn, since, way, ...)                                                                             \
  lines.push_back({id, #fn, api::Way::way == api::Way::Waited, FieldsOf<api::Call<id>::Shape>::get()});           \
  lines.back().gives_memory = !lines.back().fields.empty() && lines.back().fields[0].arg.dir == api::Dir::Memory; \
  if (!lines.back().fields.empty() && lines.back().fields[0].arg.dir == api::Dir::Finds)                          \
    lines.back().finds = lines.back().fields[0].handle;
#define CUSTOM(id, fn, since, way, ...) lines.push_back(line_of<id>(#fn, api::Way::way == api::Way::Waited));
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, way, record) lines.push_back(line_of<id>(#name, api::Way::way == api::Way::Waited));
#include "ring/api/session.def"
  return lines;
}

}  // namespace fuzz
