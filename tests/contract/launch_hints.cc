// Launch attributes that are hints: each with good and bad values, one by one.
#include "tests/contract/suite.h"

namespace contract {
namespace {

struct Attributed {
  CUlaunchAttribute attribute;
  CUlaunchConfig config;

  explicit Attributed(CUlaunchAttributeID tag) {
    std::memset(&attribute, 0, sizeof attribute);
    std::memset(&config, 0, sizeof config);
    attribute.id = tag;
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute, config.numAttrs = 1;
  }
  CUresult operator()(CUfunction f) const { return CU(cuLaunchKernelEx)(&config, f, nullptr, nullptr); }
};

GROUP(launch_preferred_cluster, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  Attributed launch(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
  launch.attribute.value.preferredClusterDim = {1, 1, 1};
  show("of one block", launch(empty));
  launch.attribute.value.preferredClusterDim = {2, 1, 1};
  show("of two blocks", launch(empty));
  launch.attribute.value.preferredClusterDim = {0, 0, 0};
  show("of none", launch(empty));
  launch.attribute.value.preferredClusterDim = {3, 1, 1};
  show("of three blocks", launch(empty));
  launch.attribute.value.preferredClusterDim = {64, 1, 1};
  show("of 64 blocks", launch(empty));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_carveout, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  Attributed launch(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  for (const unsigned percent : {0U, 50U, 100U, 101U, ~0U}) {
    launch.attribute.value.sharedMemCarveout = percent;
    show("carveout " + std::to_string(static_cast<int>(percent)), launch(empty));
  }
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_nvlink, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  Attributed launch(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
  for (const unsigned value : {0U, 1U, 2U}) {
    launch.attribute.value.nvlinkUtilCentricScheduling = value;
    show("NVLink " + std::to_string(value), launch(empty));
  }
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_window, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 20);
  Attributed launch(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
  CUaccessPolicyWindow& window = launch.attribute.value.accessPolicyWindow;
  show("all zeros", launch(empty));
  window = {.base_ptr = reinterpret_cast<void*>(a),
            .num_bytes = 1 << 16,
            .hitRatio = 1,
            .hitProp = CU_ACCESS_PROPERTY_STREAMING,
            .missProp = CU_ACCESS_PROPERTY_NORMAL};
  show("a window", launch(empty));
  window.hitRatio = 2;
  show("ratio 2", launch(empty));
  window.hitRatio = 1;
  window.missProp = CU_ACCESS_PROPERTY_PERSISTING;
  show("misses persist", launch(empty));
  window.missProp = CU_ACCESS_PROPERTY_NORMAL;
  window.hitProp = odd<CUaccessProperty>(9);
  show("hits 9", launch(empty));
  window.hitProp = CU_ACCESS_PROPERTY_NORMAL;
  window.num_bytes = std::size_t{1} << 40;
  show("a terabyte", launch(empty));
  show("after those", CU(cuCtxSynchronize)());
}

}  // namespace
}  // namespace contract
