// Outputs for traced calls: lines, a table of totals, or a file for the Perfetto viewer.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tools/ivgpu/support/output_file.h"
#include "tools/ivgpu/trace/source.h"

namespace ivgpu::trace {

class Output {
 public:
  virtual ~Output() = default;
  virtual void add(const Call& call) = 0;
  virtual void finish() = 0;
};

// Prints a line per call: begin, session, call and duration in the driver.
class Lines final : public Output {
 public:
  Lines(std::FILE* to, std::uint64_t start_ns) : to_(to), start_ns_(start_ns) {}
  void add(const Call& call) override;
  void finish() override {}

 private:
  std::FILE* const to_;
  const std::uint64_t start_ns_;
};

// Prints for each name the number of calls, failures and the total duration.
class Summary final : public Output {
 public:
  explicit Summary(std::FILE* to) : to_(to) {}
  void add(const Call& call) override;
  void finish() override;

 private:
  struct Sum {
    std::uint64_t calls = 0, errors = 0;
    double total_us = 0, longest_us = 0;
  };
  std::FILE* const to_;
  std::map<std::string, Sum> sums_;
};

// Chrome's JSON trace format, which ui.perfetto.dev opens: a process per session, a thread per channel. The file
// appears when it is complete.
class Perfetto final : public Output {
 public:
  // The constructor and finish() throw an Error if the file cannot be written.
  Perfetto(const std::filesystem::path& path, std::uint64_t start_ns);
  void add(const Call& call) override;
  void finish() override;

 private:
  void name_tracks(const Call& call);
  void write(const std::string& event);
  OutputFile file_;
  const std::uint64_t start_ns_;
  bool first_ = true;
  // sessions and channels whose names are already in the file
  std::set<std::pair<std::uint64_t, std::uint32_t>> named_;
};

}  // namespace ivgpu::trace
