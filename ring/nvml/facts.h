// The facts of ring/nvml/facts.def, numbered as in VmGpu::fact. A fact has the unit of the NVML function in its line.
//
// ```cpp
// bool temperature_of(const IvgpuVmGpu& copy, std::uint32_t& degrees) {
//   if ((copy.known & ring::bit_of(ring::Fact::temperature)) == 0) return false;  // the host's driver has none
//   degrees = copy.fact[ring::number_of(ring::Fact::temperature)];
//   return true;
// }
// ```
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ring/layout/vm_page_c.h"

namespace ring {

enum class Fact : std::uint8_t {
#define NUMBER(fact, function) fact,
#define OF_KIND(fact, function, kind) fact,
#define PAIR(first, second, function) first, second,
#define WIDE(fact, function) fact,
#define ERRORS(fact, function, kind, counter) fact,
#define APART(fact) fact,
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
};

// The facts' names, indexed by the facts' numbers.
inline constexpr const char* fact_names[] = {
#define NUMBER(fact, function) #fact,
#define OF_KIND(fact, function, kind) #fact,
#define PAIR(first, second, function) #first, #second,
#define WIDE(fact, function) #fact,
#define ERRORS(fact, function, kind, counter) #fact,
#define APART(fact) #fact,
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
};
inline constexpr std::size_t facts = std::size(fact_names);
static_assert(facts <= IVGPU_MAX_FACTS);

constexpr std::size_t number_of(Fact fact) { return static_cast<std::size_t>(fact); }
constexpr std::uint64_t bit_of(Fact fact) { return std::uint64_t{1} << number_of(fact); }

}  // namespace ring
