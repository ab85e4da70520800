// The result of one run of `ivgpu bench`: its machine and setting, and each figure natively and through ivgpu. All
// views of a run (table, histogram, JSON) show this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/ivgpu/bench/report/statistics.h"

namespace ivgpu::bench {

enum class Side { Native, Ivgpu };
const char* name_of(Side side);

// The unit of a number. The names are those of the tables and of the JSON.
enum class Unit { Microseconds, Milliseconds, GigabytesPerSecond, KernelsPerMillisecond, Percent };
const char* name_of(Unit unit);
std::optional<Unit> unit_named(const std::string& name);
bool more_is_better(Unit unit);

struct Metric {
  std::string group;  // latency, copy, memory, start or sessions
  std::string name;
  Unit unit = Unit::Microseconds;
  std::uint64_t bytes = 0;  // that a copy moves, or a kernel reads
  int sessions = 0;         // at once, in the group sessions
  std::optional<Summary> native = {}, ivgpu = {};

  std::string label() const;            // the name, with size or number of sessions
  std::optional<double> ratio() const;  // ivgpu to native, of the medians
  std::optional<double> ratio_of_p99() const;
  bool is(const Metric& other) const;  // the same thing measured
  std::optional<Summary>& side(Side side) { return side == Side::Native ? native : ivgpu; }
};

// The machine and the circumstances of the run.
struct Setting {
  std::string version;  // of ivgpu
  std::string made;     // when, as 2026-01-31T23:59:59Z
  std::string processor;
  unsigned processors = 0;
  bool virtual_machine = false;
  std::string kernel;
  std::string gpu;
  std::string driver;  // NVIDIA's version of the kernel's module, or that it is the simulated GPU
  int cuda = 0;        // from cuDriverGetVersion
  bool simulated = false;
  std::string policy;  // how processes share the GPU: "time slices" or "MPS"
  bool quick = false;
  std::vector<std::pair<std::string, std::string>> switches;
};

struct Report {
  Setting setting;
  std::vector<Metric> metrics;
  std::vector<std::string> left_out;  // a sentence each

  // The figure of that description, made where it is not there yet.
  Metric& metric(const Metric& like);
};

// "4 KiB", "256 MiB"
std::string size_text(std::uint64_t bytes);

// Four digits that count: 0.1234, 12.34, 12345.
std::string number_text(double number);

}  // namespace ivgpu::bench
