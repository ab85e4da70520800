#include "host/simgpu/api/launch/clusters.h"

#include <algorithm>

#include "host/simgpu/api/device/device.h"

namespace simgpu {
namespace {

bool equal(const Dim3& a, const Dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

bool fits(const Dim3& cluster, std::uint32_t most) {
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) return false;
  // checked first, so that the product cannot overflow
  if (cluster.x > most || cluster.y > most || cluster.z > most) return false;
  return cluster.x * cluster.y * cluster.z <= most;
}

}  // namespace

std::optional<Dim3> required_cluster(const LoadedFunction& function) {
  if (function.code->cluster) return function.code->cluster;
  const Dim3 set{static_cast<std::uint32_t>(function.cluster[0].load()),
                 static_cast<std::uint32_t>(function.cluster[1].load()),
                 static_cast<std::uint32_t>(function.cluster[2].load())};
  return equal(set, {0, 0, 0}) ? std::nullopt : std::optional(set);
}

std::uint32_t largest_cluster(const LoadedFunction& function) {
  const std::uint32_t most = function.non_portable_clusters.load() != 0 ? device_cluster_most : device_cluster_portable;
  return function.code->max_cluster == 0 ? most : std::min(most, function.code->max_cluster);
}

CUresult cluster_of(const LoadedFunction& function, const std::optional<Dim3>& asked, std::optional<Dim3>& out) {
  const std::optional<Dim3> required = required_cluster(function);
  out = asked ? asked : required;
  if (!out) return function.code->explicit_cluster ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
  const bool allowed = fits(*out, largest_cluster(function)) && (!required || equal(*out, *required));
  return allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

}  // namespace simgpu
