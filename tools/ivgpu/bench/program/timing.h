// Samples a figure, and prints lines for `ivgpu bench` on standard output:
//   begin NAME BYTES            the measurement of this figure begins
//   samples NAME BYTES V V ...  in microseconds, or in the figure's own unit
//   left-out NAME BYTES REASON
//   ready                       waits for a line on standard input
// BYTES is the size that a copy moves or a kernel reads; it is 0 for a figure that is a time.
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

// Restricts time_each() to these figures, separated by commas. Without a call, time_each() measures all figures.
void measure_only(const std::string& names);
bool is_wanted(const char* name);

// report_ready() prints "ready". must_go() then waits for a line on standard input, so that several programs start
// together; it returns false at the end of the input.
void report_ready();
bool must_go();

void report_begin(const char* name, std::size_t bytes = 0);
void report_samples(const char* name, std::size_t bytes, const std::vector<double>& samples);
void report_left_out(const char* name, std::size_t bytes, const char* reason);

struct Plan {
  const char* name;
  int samples;
  int repeat = 1;  // calls of `f` per sample, for a call that hardly takes longer than reading the clock
  int parts = 1;   // measured operations per call of `f`
  // Waits for the device, untimed, before every `burst` samples (0: never), so that the call's time includes no wait
  // for a full queue.
  int burst = 0;
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

// Launches an empty kernel with eight parameters on the default stream.
inline void launch(CUfunction nothing, CUstream stream = nullptr) {
  CUdeviceptr a = 0, b = 0, c = 0;
  int d = 1, g = 2, h = 3;
  float e = 4, f = 5;
  void* parameters[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  CHECK(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
}

}  // namespace measure
