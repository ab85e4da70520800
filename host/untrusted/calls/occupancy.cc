// Occupancy queries. They are CUSTOM because a configuration points to attributes, some of which hold handles.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/launch_config.h"

namespace host::calls {

CUresult cuOccupancyMaxPotentialClusterSize(call_of::cuOccupancyMaxPotentialClusterSize& a) {
  const LaunchConfig config(a);
  int blocks = 0;
  const CUresult result = a.call(&blocks, a.handle<CUfunction>(&api::LaunchRecord::function), config.get());
  return a.answer(result, {.clusters = static_cast<std::uint64_t>(blocks)});
}

CUresult cuOccupancyMaxActiveClusters(call_of::cuOccupancyMaxActiveClusters& a) {
  const LaunchConfig config(a);
  int clusters = 0;
  const CUresult result = a.call(&clusters, a.handle<CUfunction>(&api::LaunchRecord::function), config.get());
  return a.answer(result, {.clusters = static_cast<std::uint64_t>(clusters)});
}

}  // namespace host::calls
