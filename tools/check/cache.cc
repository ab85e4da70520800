#include "tools/check/cache.h"

#include <cpuid.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "ring/layout/layout.h"

namespace check {
namespace {

// An uncached load takes many times as long as a cache hit, on any machine and under any load.
constexpr double many_times = 4;

std::string nanoseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ns", ns);
  return text;
}

// True if the CPUID leaf reserved for hypervisors names TCG.
bool processor_is_tcg() {
  unsigned a = 0, name[3] = {};
  if (__get_cpuid(1, &a, &name[0], &name[1], &name[2]) == 0 || (name[1] & 1U << 31) == 0) return false;
  __cpuid(0x40000000, a, name[0], name[1], name[2]);
  return std::memcmp(name, "TCGTCGTCGTCG", sizeof name) == 0;
}

bool is_amd(const std::string& cpuinfo) {
  return cpuinfo.find("AuthenticAMD") != std::string::npos || cpuinfo.find("HygonGenuine") != std::string::npos;
}

}  // namespace

CacheTimes measure_cache(const std::byte* bar, guest::Nanoseconds clock, int rounds) {
  alignas(ring::page) static const std::byte own[ring::page] = {};
  CacheTimes best{1e9, 1e9};
  for (int round = 0; round < rounds && guest::uncached(best.bar_ns); ++round) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    if (round > 0) nanosleep(&pause, nullptr);
    best.bar_ns = std::min(best.bar_ns, guest::nanoseconds_per_line(bar, ring::page, clock));
    best.own_ns = std::min(best.own_ns, guest::nanoseconds_per_line(own, ring::page, clock));
  }
  return best;
}

bool is_emulated(const Machine& machine) {
  if (machine.real() && processor_is_tcg()) return true;
  return machine.text("/proc/cpuinfo").value_or("").find("QEMU TCG") != std::string::npos;
}

Finding judge_cache(const CacheTimes& times, bool emulated, bool amd) {
  const std::string bar = nanoseconds(times.bar_ns) + " for a cache line";
  const std::string both = bar + ", " + nanoseconds(times.own_ns) + " for one of ordinary memory";
  if (!guest::uncached(times.bar_ns)) return {"cache", State::Ok, "BAR2 is mapped write-back: " + bar, ""};
  if (emulated)
    return {"cache", State::Ok, "BAR2 takes " + bar + "; QEMU emulates this processor (TCG), which has no caches", ""};
  if (times.bar_ns < many_times * times.own_ns)
    return {"cache", State::Warning, "BAR2 takes " + both + ": this machine is too busy to find out how BAR2 is mapped",
            "check again when it has less to do"};
  return {
      "cache", State::Warning, "BAR2 seems to be mapped uncached, and everything will be slow then: " + both,
      amd ? "on AMD hosts the guest's mapping through sysfs is not cached; only an Intel host helps without a kernel "
            "module"
          : "check again when this machine has less to do; if it stays so, try another host: on Intel's the mapping "
            "is cached"};
}

Finding check_cache(const Machine& machine, const std::byte* bar) {
  return judge_cache(measure_cache(bar, guest::monotonic_nanoseconds), is_emulated(machine),
                     is_amd(machine.text("/proc/cpuinfo").value_or("")));
}

}  // namespace check
