// The sampling of a figure, and the lines on standard output by which `ivgpu bench` learns of it:
//   begin NAME BYTES            the figure that is measured now
//   samples NAME BYTES V V ...  in microseconds, or in the figure's own unit
//   left-out NAME BYTES REASON
//   ready                       waits for a line
// BYTES is what a copy moves or a kernel reads, 0 for a figure that is a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/program/driver.h"

namespace measure {

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point from) {
  return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

// From here on time_each() leaves out figures that are not among these names, with commas between; without a call,
// none.
void measure_only(const std::string& names);
bool is_wanted(const char* name);

// "ready", and then a line on standard input: so that others can be ready, too. False where none comes any more.
void report_ready();
bool must_go();

void report_begin(const char* name, std::size_t bytes = 0);
void report_samples(const char* name, std::size_t bytes, const std::vector<double>& samples);
void report_left_out(const char* name, std::size_t bytes, const char* reason);

struct Plan {
  const char* name;
  int samples;
  int repeat = 1;  // a sample is so many calls of `f`: where one takes hardly longer than to look at the clock
  int parts = 1;   // a call of `f` is so many of the measured thing
  int burst = 0;   // before every so many samples the device is waited for, untimed: only the call is timed then
                   // alone, and not a queue that is full
};

template <class F>
void time_each(const Plan& plan, F f) {
  if (!is_wanted(plan.name)) return;
  report_begin(plan.name);
  const int warm_up = plan.samples / 10 + 1;
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(plan.samples));
  for (int i = 0; i < plan.samples + warm_up; ++i) {
    if (plan.burst != 0 && i % plan.burst == 0) CHECK(cuCtxSynchronize());
    const auto start = Clock::now();
    for (int k = 0; k < plan.repeat; ++k) f();
    const double took = microseconds_since(start) / plan.repeat / plan.parts;
    if (i >= warm_up) samples.push_back(took);
  }
  CHECK(cuCtxSynchronize());
  report_samples(plan.name, 0, samples);
}

// An empty kernel with eight parameters, on the default stream.
inline void launch(CUfunction nothing, CUstream stream = nullptr) {
  CUdeviceptr a = 0, b = 0, c = 0;
  int d = 1, g = 2, h = 3;
  float e = 4, f = 5;
  void* parameters[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  CHECK(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
}

}  // namespace measure
