#include "tools/ivgpu/bench/program/timing.h"

#include <cstdio>

namespace measure {
namespace {

std::string& wanted() {
  static std::string names;
  return names;
}

}  // namespace

void measure_only(const std::string& names) { wanted() = "," + names + ","; }

bool is_wanted(const char* name) {
  return wanted().empty() || wanted().find("," + std::string(name) + ",") != std::string::npos;
}

void report_ready() {
  std::printf("ready\n");
  std::fflush(stdout);
}

bool must_go() {
  for (int c = std::getchar(); c != EOF; c = std::getchar())
    if (c == '\n') return true;
  return false;
}

void report_begin(const char* name, std::size_t bytes) {
  std::printf("begin %s %zu\n", name, bytes);
  std::fflush(stdout);
}

void report_samples(const char* name, std::size_t bytes, const std::vector<double>& samples) {
  std::printf("samples %s %zu", name, bytes);
  for (const double sample : samples) std::printf(" %.6g", sample);
  std::printf("\n");
  std::fflush(stdout);
}

void report_left_out(const char* name, std::size_t bytes, const char* reason) {
  std::printf("left-out %s %zu %s\n", name, bytes, reason);
  std::fflush(stdout);
}

}  // namespace measure
