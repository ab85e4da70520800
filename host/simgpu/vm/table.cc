// Selects the instruction set whose table is used.
#include "host/simgpu/vm/table.h"

#include <cstdlib>
#include <string_view>

namespace simgpu {
namespace {

#ifndef SIMGPU_BASE_ONLY
// Returns the best table that this processor supports, but none better than `wanted`.
const Table* choose_newer(std::string_view wanted) {
  __builtin_cpu_init();
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (wanted == "base" || !has_v3) return nullptr;
  if (has_v4 && wanted != "v3") {
    static const Table v4 = isa_v4::make_table();
    return &v4;
  }
  static const Table v3 = isa_v3::make_table();
  return &v3;
}
#else
const Table* choose_newer(std::string_view) { return nullptr; }
#endif

const Table& choose() {
  const char* const name = std::getenv("IVGPU_SIMGPU_ISA");
  const Table* const newer = choose_newer(name == nullptr ? "" : name);
  static const Table base = isa_base::make_table();
  return newer != nullptr ? *newer : base;
}

}  // namespace

const Table& table() {
  static const Table& chosen = choose();
  return chosen;
}

}  // namespace simgpu
