// Cases for launch attributes that are hints, with valid and invalid values.
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

// Events that a launch records when all its blocks have begun, or when its blocks trigger the event.
void show_events(CUlaunchAttributeID tag, const std::string& name, CUfunction empty) {
  Attributed launch(tag);
  CUevent plain = nullptr, timing = nullptr;
  CU(cuEventCreate)(&plain, CU_EVENT_DISABLE_TIMING);
  CU(cuEventCreate)(&timing, CU_EVENT_DEFAULT);
  // The values of both attributes begin with the event and its flags, so one member serves both.
  auto& value = launch.attribute.value.launchCompletionEvent;
  value.event = plain;
  show(name, launch(empty));
  show(name + ", waited for", CU(cuEventSynchronize)(plain));
  show(name + ", asked for", CU(cuEventQuery)(plain));
  for (const int flags : {1, 2, 99}) {
    value.flags = flags;
    show(name + ", flags " + std::to_string(flags), launch(empty));
  }
  value.flags = 0;
  value.event = timing;
  show(name + " that takes the time", launch(empty));
  value.event = nullptr;
  show(name + " that is none", launch(empty));
  CU(cuEventDestroy_v2)(timing);
  CU(cuEventDestroy_v2)(plain);
}

GROUP(launch_completion_event, InContext) {
  show_events(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, "completion event", function_of(load_module(), "empty"));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(launch_programmatic_event, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  show_events(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, "programmatic event", empty);
  CUevent event = nullptr;
  CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
  Attributed launch(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
  for (const int at_start : {1, 2}) {
    launch.attribute.value.programmaticEvent = {.event = event, .flags = 0, .triggerAtBlockStart = at_start};
    show("triggered at the blocks' start: " + std::to_string(at_start), launch(empty));
    show("waited for", CU(cuEventSynchronize)(event));
  }
  CU(cuEventDestroy_v2)(event);
  show("after those", CU(cuCtxSynchronize)());
}

// Attributes that are hints with numeric values.
GROUP(launch_numbers, InContext) {
  const CUfunction empty = function_of(load_module(), "empty");
  const auto try_numbers = [&](CUlaunchAttributeID tag, const std::string& name) {
    Attributed launch(tag);
    for (const int number : {0, 1, 2, 3, 99, -1}) {
      std::memcpy(&launch.attribute.value, &number, sizeof number);
      show(name + " " + std::to_string(number), launch(empty));
    }
  };
  try_numbers(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, "synchronization policy");
  try_numbers(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, "cluster scheduling");
  try_numbers(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, "programmatic serialization");
  try_numbers(CU_LAUNCH_ATTRIBUTE_PRIORITY, "priority");
  try_numbers(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, "memory domain");
  show("after those", CU(cuCtxSynchronize)());
}

}  // namespace
}  // namespace contract
