// A run as `ivgpu bench` might measure it, for the tests that show and compare runs.
#pragma once

#include "tools/ivgpu/bench/report/report.h"

namespace ivgpu::bench {

inline Setting some_setting() {
  return {.version = "0.1.0",
          .made = "2026-01-02T03:04:05Z",
          .processor = "Some CPU <fast> & cheap",
          .processors = 16,
          .virtual_machine = true,
          .kernel = "6.1.0",
          .gpu = "Some GPU",
          .driver = "driver 580.1",
          .cuda = 13000,
          .simulated = false,
          .policy = "time slices",
          .quick = false,
          .switches = {{"IVGPU_OFF", ""}, {"spin_us", "50"}}};
}

inline Report some_report() {
  Report report{some_setting(), {}, {"pinned_h2d, ivgpu: no pinned memory of 256 MiB"}};
  report.metric({.group = "latency", .name = "launch_synchronize"}).native = summary_of({8, 10, 12}, false);
  report.metrics.back().ivgpu = summary_of({9, 12, 30}, false);
  report.metric({.group = "latency", .name = "idle_host_processor", .unit = Unit::Percent}).ivgpu =
      summary_of({0}, false);
  for (const std::uint64_t bytes : {4096, 1 << 20}) {
    Metric& copy =
        report.metric({.group = "copy", .name = "pinned_h2d", .unit = Unit::GigabytesPerSecond, .bytes = bytes});
    copy.native = summary_of({static_cast<double>(bytes) / 1000}, true);
    copy.ivgpu = summary_of({static_cast<double>(bytes) / 2000}, true);
  }
  Metric& together =
      report.metric({.group = "sessions", .name = "launch_synchronize", .unit = Unit::Microseconds, .sessions = 2});
  together.native = summary_of({20, 22}, false);
  together.native->each = {{20, 20}, {22, 24}};
  together.ivgpu = summary_of({21, 23}, false);
  together.ivgpu->each = {{21, 21}, {23, 29}};
  return report;
}

}  // namespace ivgpu::bench
