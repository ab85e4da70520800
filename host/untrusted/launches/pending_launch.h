// A kernel's launch that a channel has taken from its ring and not yet issued: the record, copied to private memory and
// checked, and the shape by which a kept graph is found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ring/api/cuda.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"

namespace host {

// A launch except for its stream and the bytes of its parameters.
struct LaunchShape {
  std::uint64_t function = 0;  // the function's id; ids have a generation
  void* handle = nullptr;      // the driver's CUfunction or CUkernel
  std::uint32_t grid[3] = {}, block[3] = {};
  std::uint32_t shared = 0, param_bytes = 0;

  bool operator==(const LaunchShape&) const = default;
  bool has_same_function(const LaunchShape& other) const {
    return function == other.function && handle == other.handle && param_bytes == other.param_bytes;
  }
  std::uint64_t hash() const;
};

// The stream of a launch, as the key of a graph. A graph belongs to one stream, since a launch of a graph waits for the
// graph's launches in other streams.
struct LaunchStream {
  std::uint64_t id = 0;
  CUstream handle = nullptr;
  unsigned context = 0;

  bool operator==(const LaunchStream&) const = default;
};

// Mixes a number into a hash. The constant is 2^64 divided by the golden ratio.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

inline std::uint64_t LaunchShape::hash() const {
  const auto pair = [](std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; };
  std::uint64_t h = mixed(function, pair(grid[0], grid[1]));
  h = mixed(h, pair(grid[2], block[0]));
  h = mixed(h, pair(block[1], block[2]));
  return mixed(h, pair(shared, param_bytes));
}

struct PendingLaunch {
  // The longest record of a launch in a graph: parameters of about 900 bytes. Longer launches go to cuLaunchKernel.
  static constexpr std::size_t most_bytes = 1024;

  ring::RecordHeader header;
  LaunchShape shape;
  std::uint64_t hash = 0;
  std::size_t bytes = 0;  // of the record
  alignas(16) std::array<std::byte, most_bytes> copy;

  std::span<const std::byte> record() const { return std::span(copy).first(bytes); }
  std::span<const std::byte> parameters() const {
    return std::span(copy).subspan(sizeof(ring::RecordHeader) + sizeof(api::LaunchRecord), shape.param_bytes);
  }
};

}  // namespace host
