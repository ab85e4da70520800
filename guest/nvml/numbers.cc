// The getters that return numbers. All numbers come from ring/nvml/facts.def.
#include <algorithm>
#include <string_view>

#include "guest/nvml/library.h"

namespace guest::nvml {
namespace {

// One of several facts that a function can return, with the arguments that select the fact.
struct OfArguments {
  std::string_view function;
  unsigned kind, counter;
  ring::Fact fact;
};

constexpr OfArguments of_arguments[] = {
#define NUMBER(fact, function)
#define OF_KIND(fact, function, kind) {#function, kind, 0, ring::Fact::fact},
#define PAIR(first, second, function)
#define WIDE(fact, function)
#define ERRORS(fact, function, kind, counter) {#function, kind, counter, ring::Fact::fact},
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"
};

std::optional<ring::Fact> fact_of(std::string_view function, unsigned kind, unsigned counter = 0) {
  for (const OfArguments& known : of_arguments)
    if (known.function == function && known.kind == kind && known.counter == counter) return known.fact;
  return std::nullopt;
}

// `Number`: unsigned, or unsigned long long. If a function has no fact, NVML defines the value, but the host does not
// report it.
template <class Number>
nvmlReturn_t give(nvmlDevice_t device, std::optional<ring::Fact> fact, Number* to, bool sound = true) {
  return library().of_gpu(device, About::State, sound && to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    const auto number = fact ? gpu.knows(*fact) : std::nullopt;
    if (!number) return NVML_ERROR_NOT_SUPPORTED;
    *to = *number;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t give_pair(nvmlDevice_t device, ring::Fact first, ring::Fact second, unsigned* to, unsigned* to_second) {
  const bool sound = to != nullptr && to_second != nullptr;
  return library().of_gpu(device, About::State, sound, [&](const Gpu& gpu) -> nvmlReturn_t {
    const auto a = gpu.knows(first), b = gpu.knows(second);
    if (!a || !b) return NVML_ERROR_NOT_SUPPORTED;
    *to = *a, *to_second = *b;
    return NVML_SUCCESS;
  });
}

// The bounds of NVML's enumerations. Clocks have no bound, because NVIDIA's library returns NOT_SUPPORTED for any
// number.
constexpr unsigned sensors = 1, thresholds = 8, clocks = ~0U;

}  // namespace

#define NUMBER(fact, function) \
  NVML_CALL function(nvmlDevice_t device, unsigned* to) { return give<unsigned>(device, ring::Fact::fact, to); }
#define OF_KIND(fact, function, kind)
#define PAIR(first, second, function)                                                     \
  NVML_CALL function(nvmlDevice_t device, unsigned* to_first, unsigned* to_second) {      \
    return give_pair(device, ring::Fact::first, ring::Fact::second, to_first, to_second); \
  }
#define WIDE(fact, function)                                        \
  NVML_CALL function(nvmlDevice_t device, unsigned long long* to) { \
    return give<unsigned long long>(device, ring::Fact::fact, to);  \
  }
#define ERRORS(fact, function, kind, counter)
#define APART(fact)
#include "ring/nvml/facts.def"
#include "ring/nvml/undefine_facts.h"

// Defines the functions of the OF_KIND lines, each once.
#define BY_KIND(function, kinds)                                               \
  NVML_CALL function(nvmlDevice_t device, unsigned kind, unsigned* to) {       \
    return give<unsigned>(device, fact_of(#function, kind), to, kind < kinds); \
  }
BY_KIND(nvmlDeviceGetTemperature, sensors)
BY_KIND(nvmlDeviceGetTemperatureThreshold, thresholds)
BY_KIND(nvmlDeviceGetClockInfo, clocks)
BY_KIND(nvmlDeviceGetMaxClockInfo, clocks)
BY_KIND(nvmlDeviceGetApplicationsClock, clocks)
#undef BY_KIND

// Defines the function of the ERRORS lines.
NVML_CALL nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned kind, unsigned counter, unsigned long long* to) {
  return give<unsigned long long>(device, fact_of("nvmlDeviceGetTotalEccErrors", kind, counter), to,
                                  kind < 2 && counter < 2);
}

// Newer names of functions that return the same facts.
NVML_CALL nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* to) {
  return give<unsigned long long>(device, ring::Fact::throttle_reasons, to);
}
NVML_CALL nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned* to) {
  return give<unsigned>(device, ring::Fact::performance_state, to);
}
// `which`: 0 for the current clock, 1 for the applications' setting. 2 is the setting's default and 3 the customer's
// maximum; the host reports neither.
NVML_CALL nvmlDeviceGetClock(nvmlDevice_t device, unsigned kind, unsigned which, unsigned* to) {
  std::optional<ring::Fact> fact;
  if (which == 0) fact = fact_of("nvmlDeviceGetClockInfo", kind);
  if (which == 1) fact = fact_of("nvmlDeviceGetApplicationsClock", kind);
  return give<unsigned>(device, fact, to, which < 4);
}

}  // namespace guest::nvml
