// What the parts of the group `memory` share: how much they do, figures that are sampled in turns, and how a figure is
// left out that a driver or a machine does not have.
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
  std::size_t block;          // bytes that are registered, and copied
  int registrations, copies;  // samples
  int calls;                  // samples of what takes microseconds
  std::size_t read;           // bytes that a kernel reads
  int kernels;                // samples of the kernels that read
  unsigned edge_bits;         // the texture has 2^edge_bits texels in a row, and as many rows
  unsigned passes;            // how often a kernel samples the whole texture
  int textures;               // samples
  Grid grid;
};

// The parts, in the order in which they are measured.
void registrations(const MemoryEffort& effort);
void registered_copies(const MemoryEffort& effort);
void reading_kernels(const Device& device, const MemoryEffort& effort);
void texture_kernel(const MemoryEffort& effort);
void virtual_memory(const Device& device, const MemoryEffort& effort);
void pools(const Device& device, const MemoryEffort& effort);

// A figure that is sampled in turns with others. The first `warm_up` samples are not told.
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

// False where `result` says that there is no such thing here, or no room for it: the figures of these names are left out
// then. Any other failure ends the program.
bool is_given(CUresult result, const char* call, const Names& names, std::size_t bytes = 0);
#define GIVEN(call, ...) ::measure::is_given(::measure::driver.call, #call, __VA_ARGS__)

// The same for a device's attribute, which is 0 where a device has no such thing.
bool has(CUdevice device, CUdevice_attribute attribute, const char* what, const Names& names, std::size_t bytes = 0);

// Private anonymous memory of this process, with every page touched: a page begins with its number plus one.
void* touched_memory(std::size_t bytes);
bool is_as_touched(const void* at, std::size_t bytes);
void unmap(void* at, std::size_t bytes);

// The address by which the device knows pinned or registered memory.
CUdeviceptr address_on_device(void* host);

}  // namespace measure
