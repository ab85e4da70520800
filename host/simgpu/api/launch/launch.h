// A kernel launch before it goes into a stream (launch.cc) or into a node of a graph (graph_kernel.cc).
#pragma once

#include "host/simgpu/api/device/device.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// The bytes of a kernel's parameters, as its code reads them.
using PackedParameters = std::vector<std::byte>;

// A launch as it was asked for.
struct LaunchRequest {
  CUfunction function;
  Dim3 grid, block;
  std::size_t dynamic_shared;
  CUstream stream;
  void** parameters;
  void** extra;
  bool cooperative;
  std::optional<Dim3> cluster = {};  // that the launch asks for; check_launch replaces it by the one that it has
  bool prefers_clusters = false;
  std::vector<CUevent> events = {};  // to record when it is done
  std::vector<CUlaunchAttribute> attributes = {};
};

// Takes an attribute of cuLaunchKernelEx or of a kernel node. Hints are checked only; an attribute that would change the
// result and is not served is refused.
CUresult read_attribute(const CUlaunchAttribute& attribute, LaunchRequest& request);

CUresult pack_parameters(const LaunchRequest& request, const Function& code, PackedParameters& out);

// Checks the launch as the driver does at the call.
CUresult check_launch(LaunchRequest& request, const LoadedFunction& function, unsigned multiprocessors);

// The work of a launch that check_launch has let through.
std::function<void()> launch_work(Driver& driver, Context& context, const LaunchRequest& request,
                                  const FunctionReference& reference, const Multiprocessors& on,
                                  PackedParameters parameters);

}  // namespace simgpu
