// Converts the table of symbols.cc once into the form that ring/abi/proc_address.h searches.
#include "host/simgpu/api/module/symbols.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "host/simgpu/api/absent.h"

namespace simgpu {

// symbols.cc defines this table.
namespace served {
struct Symbol {
  const char* name;
  int since;
  void (*function)();
};
extern const Symbol symbols[];
extern const unsigned symbol_count;
}  // namespace served

std::span<const cuabi::ProcEntry> entry_points() {
  static const std::vector<cuabi::ProcEntry>* const entries = [] {
    auto* const all = new std::vector<cuabi::ProcEntry>;
    auto& list = *all;
    for (const served::Symbol& symbol : std::span(served::symbols, served::symbol_count)) {
      const cuabi::ProcName name = cuabi::split_symbol(symbol.name);
      list.push_back({name.base, name.variant, symbol.since, reinterpret_cast<void*>(symbol.function)});
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
    if (std::strcmp(known.name, symbol) == 0) return !is_absent(reinterpret_cast<const void*>(known.function));
  return false;
}
