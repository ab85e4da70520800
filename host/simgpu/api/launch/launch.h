// A kernel launch before it enters a stream (launch.cc) or a graph node (graph_kernel.cc).
#pragma once

#include "host/simgpu/api/device/device.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// The parameter bytes, in the layout that the kernel expects.
using PackedParameters = std::vector<std::byte>;

// A launch as the program requested it.
struct LaunchRequest {
  CUfunction function;
  Dim3 grid, block;
  std::size_t dynamic_shared;
  CUstream stream;
  void** parameters;
  void** extra;
  bool cooperative;
  std::optional<Dim3> cluster = {};  // the requested size; check_launch replaces it with the actual size
  bool prefers_clusters = false;
  std::vector<CUevent> events = {};  // the launch records these events when it ends
  std::vector<CUlaunchAttribute> attributes = {};
};

// Reads an attribute of cuLaunchKernelEx or of a kernel node. Hints are only checked. An attribute that would change
// the result is refused if the simulation does not support it.
CUresult read_attribute(const CUlaunchAttribute& attribute, LaunchRequest& request);

CUresult pack_parameters(const LaunchRequest& request, const Function& code, PackedParameters& out);

// Makes the checks that the driver makes within the launch call.
CUresult check_launch(LaunchRequest& request, const LoadedFunction& function, unsigned multiprocessors);

// Returns the work of a launch that passed check_launch.
std::function<void()> launch_work(Driver& driver, Context& context, const LaunchRequest& request,
                                  const FunctionReference& reference, const Multiprocessors& on,
                                  PackedParameters parameters);

}  // namespace simgpu
