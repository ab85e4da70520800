// Turns the table of symbols.cc into the form that ring/abi/proc_address.h searches, once.
#include "host/simgpu/api/symbols.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "host/simgpu/api/absent.h"

namespace simgpu {

// In symbols.cc.
namespace served {
struct Symbol {
  const char* name;
  int since;
  void (*function)();
};
extern const Symbol symbols[];
extern const unsigned symbol_count;
}  // namespace served

namespace {

void* served_by(const served::Symbol& symbol) {
  auto* const function = reinterpret_cast<void*>(symbol.function);
  return is_absent(function) ? nullptr : function;
}

}  // namespace

std::span<const cuabi::ProcEntry> entry_points() {
  static const std::vector<cuabi::ProcEntry>* const entries = [] {
    auto* const all = new std::vector<cuabi::ProcEntry>;
    auto& list = *all;
    for (const served::Symbol& symbol : std::span(served::symbols, served::symbol_count)) {
      const cuabi::ProcName name = cuabi::split_symbol(symbol.name);
      list.push_back({name.base, name.variant, symbol.since, served_by(symbol)});
    }
    cuabi::sort_entries(list);
    return all;
  }();
  return *entries;
}

void (*function_of(std::string_view symbol))() {
  for (const served::Symbol& s : std::span(served::symbols, served::symbol_count))
    if (s.name == symbol) return s.function;
  return nullptr;
}

}  // namespace simgpu

bool ivgpu_sim_serves(const char* symbol) {
  using namespace simgpu;
  for (const served::Symbol& known : std::span(served::symbols, served::symbol_count))
    if (std::strcmp(known.name, symbol) == 0) return served_by(known) != nullptr;
  return false;
}
