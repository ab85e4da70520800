// The conditions of conditional nodes: values that kernels set by handle.
#pragma once

#include "host/simgpu/api/objects.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace simgpu {

struct Condition {
  CUgraphConditionalHandle handle = 0;
  std::shared_ptr<Context> context;
  unsigned default_value = 0;
  bool assigns_default = false;  // each launch resets the value to default_value
  bool has_node = false;
  std::atomic<unsigned> value{0};
};

std::shared_ptr<Condition> make_condition();
// Returns the condition of a handle; null for an unknown handle.
std::shared_ptr<Condition> condition_of(CUgraphConditionalHandle handle);

// Returns the function that stores the values of cudaGraphSetConditional (Launch::set_condition).
const std::function<void(std::uint64_t, std::uint32_t)>& condition_setter();

}  // namespace simgpu
