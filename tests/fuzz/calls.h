// Every call of the table, as the parts of its record, generated from the table's lines, so that the fuzzers cover a
// new call without a change here. A CALL line has parameters; a CUSTOM or SESSION line has a record with a list of
// fields.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "ring/api/call.h"
#include "tests/fuzz/by_list.h"

namespace fuzz {

// A parameter of a CALL line.
struct Field {
  api::Arg arg;
  api::Handle handle = api::Handle::None;  // the handle type of the parameter, or of its pointee
  std::uint8_t bits = 64;                  // the size of a number
  std::uint32_t size = 1;                  // the size of a pointer's pointee
};

struct CallLine {
  std::uint16_t id;
  std::string_view name;
  bool waits;
  std::vector<Field> fields;                      // of a CALL line
  void (*by_list)(Choices&, Payload&) = nullptr;  // of a CUSTOM or SESSION line
  bool gives_memory = false;                      // the call's reply begins with an address
  api::Handle finds = api::Handle::None;          // the call's reply begins with the id of a found object

  // The driver's entry point behind this call. `disturb`, a call of the session itself, also calls the driver.
  std::string_view asks_driver() const {
    if (name == "disturb") return "cuMemFree_v2";
    return id < api::first_session_id ? name : "";
  }
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
// The corpora choose a call by its place in this list, so a call that the fuzzers need not reach is left out: switch_off
// has one number, which tests/unit/session/launch_graphs_test.cc covers.
#define SESSION(id, name, way, record) \
  if constexpr (id != api::id_of::switch_off) lines.push_back(line_of<id>(#name, api::Way::way == api::Way::Waited));
#include "ring/api/session.def"
  return lines;
}

// True if the call concerns captures or graphs, or if a capture records, refuses or outlives it.
inline bool is_about_graphs(std::string_view name) {
  constexpr std::string_view parts[] = {"Graph", "Captur", "UserObject", "pageable"};
  constexpr std::string_view names[] = {"cuLaunchKernel",
                                        "cuLaunchHostFunc",
                                        "cuStreamAddCallback",
                                        "cuMemsetD8Async",
                                        "cuMemcpyDtoDAsync_v2",
                                        "cuMemAllocAsync",
                                        "cuMemFreeAsync",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuEventRecord",
                                        "cuEventQuery",
                                        "cuStreamWaitEvent",
                                        "cuStreamQuery",
                                        "cuStreamSynchronize",
                                        "cuStreamCreate",
                                        "cuStreamDestroy_v2",
                                        "cuModuleUnload",
                                        "cuLibraryUnload",
                                        "cuDevicePrimaryCtxReset_v2",
                                        "pin_arena",
                                        "disturb",
                                        "await_context"};
  return std::any_of(std::begin(parts), std::end(parts), [&](auto p) { return name.find(p) != name.npos; }) ||
         std::find(std::begin(names), std::end(names), name) != std::end(names);
}
// The lines that concern captures or graphs.
inline std::vector<CallLine> about_graphs(const std::vector<CallLine>& all) {
  std::vector<CallLine> lines;
  std::copy_if(all.begin(), all.end(), std::back_inserter(lines),
               [](const auto& l) { return is_about_graphs(l.name); });
  return lines;
}

}  // namespace fuzz
