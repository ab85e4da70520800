// Every call of the table as a record's parts, made from the lines themselves: a call that is added is fuzzed without a
// word here. A CALL line tells its parameters; what a CUSTOM or SESSION line's record holds is told by a recipe, and
// one that has none gets words of every kind.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ring/api/call.h"

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
  std::vector<Field> fields;     // CALL
  const char* recipe = nullptr;  // CUSTOM, SESSION
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
  return f;
}

template <class S>
struct FieldsOf;
template <class... P, api::Arg... A>
struct FieldsOf<api::Shape<CUresult(P...), A...>> {
  static std::vector<Field> get() { return {field_of<P>(A)...}; }
};

// The words of a record, one letter each:
//   s stream  e event  m module  l library  f function  k kernel     S E M L F K  an id to be given to a new one
//   d device address  a place in the arena or none  p multiple of a huge page  n small number  N any number  b 0 or 1
//   0 zero  w a window
// and then what follows it: `name` its length and a name; `bytes` as many as the second-last word but one says;
// `launch` the rest of a launch; `load` the rest of a load.
inline constexpr std::pair<std::string_view, const char*> recipes[] = {
    {"hello", "wp"},
    {"pin_arena", "pp"},
    {"join_arena", "pp"},
    {"take_output", "n"},
    {"cuDevicePrimaryCtxReset_v2", "0"},
    {"cuCtxCreate_v4", "NNN"},
    {"cuCtxDestroy_v2", "n"},
    {"cuMemAlloc_v2", "nn0"},
    {"cuMemAllocPitch_v2", "nnn"},
    {"cuMemFree_v2", "d"},
    {"cuMemcpyHtoD_v2", "dansb bytes"},
    {"cuMemcpyDtoH_v2", "dansb"},
    {"cuMemcpyHtoDAsync_v2", "dansb bytes"},
    {"cuMemcpyDtoHAsync_v2", "dansb"},
    {"cuMemcpy3D_v2", "dnndnnnnns"},
    {"cuMemcpy3DAsync_v2", "dnndnnnnns"},
    {"cuMemsetD2D8_v2", "dnnnns"},
    {"cuMemsetD2D16_v2", "dnnnns"},
    {"cuMemsetD2D32_v2", "dnnnns"},
    {"cuMemsetD2D8Async", "dnnnns"},
    {"cuMemsetD2D16Async", "dnnnns"},
    {"cuMemsetD2D32Async", "dnnnns"},
    {"cuModuleLoadData", "Ma load"},
    {"cuModuleLoadDataEx", "Ma load"},
    {"cuLibraryLoadData", "La load"},
    {"cuModuleUnload", "m"},
    {"cuLibraryUnload", "l"},
    {"cuModuleGetFunction", "mF name"},
    {"cuLibraryGetKernel", "lK name"},
    {"cuModuleGetGlobal_v2", "m name"},
    {"cuLibraryGetGlobal", "l name"},
    {"cuKernelGetFunction", "kF"},
    {"cuLibraryGetModule", "lM"},
    {"cuLaunchKernel", "fs launch"},
    {"cuLaunchKernelEx", "fs launch"},
    {"cuOccupancyMaxActiveClusters", "fs launch"},
};
inline constexpr const char* no_recipe = "NNNNNNNN name";

constexpr const char* recipe_of(std::string_view name) {
  for (const auto& [known, recipe] : recipes)
    if (known == name) return recipe;
  return no_recipe;
}

inline std::vector<CallLine> all_calls() {
  std::vector<CallLine> lines;
#define CALL(id, fn, since, way, ...) \
  lines.push_back({id, #fn, api::Way::way == api::Way::Waited, FieldsOf<api::Call<id>::Shape>::get()});
#define CUSTOM(id, fn, since, way, ...) \
  lines.push_back({id, #fn, api::Way::way == api::Way::Waited, {}, recipe_of(#fn)});
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, way, record) \
  lines.push_back({id, #name, api::Way::way == api::Way::Waited, {}, recipe_of(#name)});
#include "ring/api/session.def"
  return lines;
}

}  // namespace fuzz
