// The result of one run of `ivgpu bench`: the machine and setting, and each figure natively and through ivgpu. Table,
// histogram and JSON all show this report.
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

// The unit of a number. The names appear in the tables and in the JSON.
enum class Unit { Microseconds, Milliseconds, GigabytesPerSecond, KernelsPerMillisecond, Percent };
const char* name_of(Unit unit);
std::optional<Unit> unit_named(const std::string& name);
bool more_is_better(Unit unit);

struct Metric {
  std::string group;  // latency, kernels, copy, memory, start or sessions
  std::string name;
  Unit unit = Unit::Microseconds;
  std::uint64_t bytes = 0;  // the size that a copy moves or a kernel reads
  int sessions = 0;         // sessions at once, in the group sessions
  std::optional<Summary> native = {}, ivgpu = {};

  std::string label() const;            // the name, with the size or the number of sessions
  std::optional<double> ratio() const;  // the ratio of the medians, ivgpu to native
  std::optional<double> ratio_of_p99() const;
  bool is(const Metric& other) const;  // true if both have the same name, size and number of sessions
  std::optional<Summary>& side(Side side) { return side == Side::Native ? native : ivgpu; }
};

// The machine and the circumstances of the run.
struct Setting {
  std::string version;  // the version of ivgpu
  std::string made;     // the time of the run, such as 2026-01-31T23:59:59Z
  std::string processor;
  unsigned processors = 0;
  bool virtual_machine = false;
  std::string kernel;
  std::string gpu;
  std::string driver;  // the version of NVIDIA's kernel module, or a note that the GPU is simulated
  int cuda = 0;        // from cuDriverGetVersion
  bool simulated = false;
  std::string policy;  // how processes share the GPU: "time slices" or "MPS"
  bool quick = false;
  std::vector<std::pair<std::string, std::string>> switches;
};

struct Report {
  Setting setting;
  std::vector<Metric> metrics;
  std::vector<std::string> left_out;  // one sentence per omitted figure

  // Returns the figure with that description, and creates it if it is absent.
  Metric& metric(const Metric& like);
};

// "4 KiB", "256 MiB"
std::string size_text(std::uint64_t bytes);

// Shows four significant digits: 0.1234, 12.34, 12345.
std::string number_text(double number);

}  // namespace ivgpu::bench
