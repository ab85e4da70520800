// A kernel launch before it enters a stream (launch.cc) or a graph node (graph_kernel.cc).
#pragma once

#include "host/simgpu/api/device/device.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// The parameter bytes in the layout that the kernel reads.
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
  std::optional<Dim3> cluster = {};  // the requested size; check_launch replaces it by the actual size
  bool prefers_clusters = false;
  std::vector<CUevent> events = {};  // to record at the launch's end
  std::vector<CUlaunchAttribute> attributes = {};
};

// Reads an attribute of cuLaunchKernelEx or a kernel node. Hints are only checked. Refuses unserved attributes that
// would change the result.
CUresult read_attribute(const CUlaunchAttribute& attribute, LaunchRequest& request);

CUresult pack_parameters(const LaunchRequest& request, const Function& code, PackedParameters& out);

// Checks the launch as the driver does at the call.
CUresult check_launch(LaunchRequest& request, const LoadedFunction& function, unsigned multiprocessors);

// The work of a launch that passed check_launch.
std::function<void()> launch_work(Driver& driver, Context& context, const LaunchRequest& request,
                                  const FunctionReference& reference, const Multiprocessors& on,
                                  PackedParameters parameters);

}  // namespace simgpu
