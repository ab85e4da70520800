// Helpers of the group `memory`: the amount of work, figures that are sampled alternately, and omission of figures that
// a driver or a machine does not support.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/program/timing.h"

namespace measure {

struct Grid {
  unsigned blocks, threads;
  std::size_t all() const { return std::size_t{blocks} * threads; }
};

struct MemoryEffort {
  std::size_t block;          // bytes to register and copy
  int registrations, copies;  // samples
  int calls;                  // samples of operations that take microseconds
  std::size_t read;           // bytes that each kernel reads
  int kernels;                // samples of the reading kernels
  unsigned edge_bits;         // the texture has 2^edge_bits rows of 2^edge_bits texels
  unsigned passes;            // passes of a kernel over the whole texture
  int textures;               // samples
  Grid grid;
};

// The parts of the group, in the order in which they run.
void registrations(const MemoryEffort& effort);
void registered_copies(const MemoryEffort& effort);
void reading_kernels(const Device& device, const MemoryEffort& effort);
void texture_kernel(const MemoryEffort& effort);
void virtual_memory(const Device& device, const MemoryEffort& effort);
void pools(const Device& device, const MemoryEffort& effort);

// A figure that is sampled alternately with others. Does not report the first `warm_up` samples.
class Series {
 public:
  Series(std::string name, std::size_t bytes, int warm_up) : name_(std::move(name)), bytes_(bytes), warm_up_(warm_up) {
    report_begin(name_.c_str(), bytes_);
  }

  template <class F>
  void time(F f) {
    const auto start = Clock::now();
    f();
    took(microseconds_since(start));
  }
  void took(double microseconds) {
    if (taken_++ >= warm_up_) samples_.push_back(microseconds);
  }
  void report() const { report_samples(name_.c_str(), bytes_, samples_); }

 private:
  std::string name_;
  std::size_t bytes_;
  int warm_up_, taken_ = 0;
  std::vector<double> samples_;
};

using Names = std::vector<std::string>;

// Returns false if `result` means that the feature is unsupported or the memory does not suffice; the report then omits
// the figures `names`. Any other failure ends the program.
bool is_given(CUresult result, const char* call, const Names& names, std::size_t bytes = 0);
#define GIVEN(call, ...) ::measure::is_given(::measure::driver.call, #call, __VA_ARGS__)

// Same for a device's attribute, which is 0 if the device lacks the feature.
bool has(CUdevice device, CUdevice_attribute attribute, const char* what, const Names& names, std::size_t bytes = 0);

// Private anonymous memory of this process, with every page touched: each page begins with its number plus one.
void* touched_memory(std::size_t bytes);
bool is_as_touched(const void* at, std::size_t bytes);
void unmap(void* at, std::size_t bytes);

// The device's address of pinned or registered memory.
CUdeviceptr address_on_device(void* host);

}  // namespace measure
