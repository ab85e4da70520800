// Cases for stream attributes: one group for valid values, and one group for each kind of invalid value.
#include "tests/contract/contexts.h"

namespace contract {
namespace {

CUstreamAttrValue zeros() {
  CUstreamAttrValue value;
  std::memset(&value, 0, sizeof value);
  return value;
}

CUresult set(CUstream stream, CUlaunchAttributeID tag, const CUstreamAttrValue& value) {
  return CU(cuStreamSetAttribute)(stream, tag, &value);
}

CUresult get(CUstream stream, CUlaunchAttributeID tag, CUstreamAttrValue& value) {
  return CU(cuStreamGetAttribute)(stream, tag, &value);
}

CUstream new_stream() {
  CUstream stream = nullptr;
  CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -1);
  return stream;
}

GROUP(stream_attributes_new, InContext) {
  const CUstream stream = new_stream();
  CUstreamAttrValue value = zeros();
  show("window", get(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value));
  show("its bytes", static_cast<long long>(value.accessPolicyWindow.num_bytes));
  show_flag("its start is null", value.accessPolicyWindow.base_ptr == nullptr);
  show("its hits", value.accessPolicyWindow.hitProp);
  show("its misses", value.accessPolicyWindow.missProp);
  show("policy", get(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
  show("it is", value.syncPolicy);
  show("priority", get(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  show("it is", value.priority);
  show("domain", get(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value));
  show("it is", value.memSyncDomain);
  show("domain map", get(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value));
  show("its default", value.memSyncDomainMap.default_);
  show("NVLink", get(stream, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, value));
  show("it is", value.nvlinkUtilCentricScheduling);
  show("of the legacy stream", get(CU_STREAM_LEGACY, CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  show("of the NULL stream", get(nullptr, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
  show("of the thread's stream", get(CU_STREAM_PER_THREAD, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value));
  show("_ptsz", CU(cuStreamGetAttribute_ptsz)(nullptr, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
}

// Attributes that are valid only for launches, and invalid attributes.
GROUP(stream_attributes_of_launches, InContext) {
  const CUstream stream = new_stream();
  CUstreamAttrValue value = zeros();
  for (const int tag : {-1, 0, 2, 4, 5, 6, 7, 11, 12, 13, 14, 15, 17, 99}) {
    const std::string name = std::to_string(tag);
    value = zeros();
    show("get " + name, get(stream, odd<CUlaunchAttributeID>(tag), value));
    show("set " + name, set(stream, odd<CUlaunchAttributeID>(tag), zeros()));
  }
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(stream_attributes_numbers, InContext) {
  const CUstream stream = new_stream();
  CUstreamAttrValue value = zeros();
  for (const int policy : {1, 2, 3, 4, 0, 5, -1}) {
    value.syncPolicy = odd<CUsynchronizationPolicy>(policy);
    show("set policy " + std::to_string(policy), set(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
    get(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value);
    show("it is", value.syncPolicy);
  }
  for (const int priority : {0, -2, -99, 99}) {
    value = zeros();
    value.priority = priority;
    show("set priority " + std::to_string(priority), set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
    CU(cuStreamGetPriority)(stream, &value.priority);
    show("it is", value.priority);
  }
  for (const int domain : {1, 0, 2, -1}) {
    value = zeros();
    value.memSyncDomain = odd<CUlaunchMemSyncDomain>(domain);
    show("set domain " + std::to_string(domain), set(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value));
    get(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value);
    show("it is", value.memSyncDomain);
  }
  value = zeros();
  show("set domain map 0, 0", set(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value));
  value.memSyncDomainMap = {.default_ = 200, .remote = 0};
  show("set domain map 200, 0", set(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value));
  value.memSyncDomainMap = {.default_ = 0, .remote = 200};
  show("set domain map 0, 200", set(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value));
  value = zeros();
  for (const unsigned number : {1U, 0U, 2U}) {
    value.nvlinkUtilCentricScheduling = number;
    show("set NVLink " + std::to_string(number),
         set(stream, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, value));
  }
}

CUstreamAttrValue window_of(CUdeviceptr start, std::size_t bytes) {
  CUstreamAttrValue value = zeros();
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(start);
  value.accessPolicyWindow.num_bytes = bytes;
  value.accessPolicyWindow.hitRatio = 0.5F;
  value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  return value;
}

GROUP(stream_attributes_window, InContext) {
  constexpr auto tag = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  const CUstream stream = new_stream();
  CUdeviceptr a = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 20);
  CUstreamAttrValue value = window_of(a, 1 << 16);
  show("a window", set(stream, tag, value));
  value = zeros();
  get(stream, tag, value);
  show_flag("its start", value.accessPolicyWindow.base_ptr == reinterpret_cast<void*>(a));
  show("its bytes", static_cast<long long>(value.accessPolicyWindow.num_bytes));
  show("its hits", value.accessPolicyWindow.hitProp);
  show("its misses", value.accessPolicyWindow.missProp);
  show("work under it", CU(cuMemsetD8Async)(a, 1, 64, stream));
  show("inside of an allocation", set(stream, tag, window_of(a + 4096, 4096)));
  value = window_of(a, 4096);
  for (const int property : {0, 1, 2, 3, -1}) {
    value.accessPolicyWindow.hitProp = odd<CUaccessProperty>(property);
    show("hits " + std::to_string(property), set(stream, tag, value));
  }
  value = window_of(a, 4096);
  for (const int property : {0, 1, 2, 3, -1}) {
    value.accessPolicyWindow.missProp = odd<CUaccessProperty>(property);
    show("misses " + std::to_string(property), set(stream, tag, value));
  }
  value = window_of(a, 4096);
  for (const float ratio : {0.0F, 1.0F, -0.5F, 1.5F}) {
    value.accessPolicyWindow.hitRatio = ratio;
    show("ratio " + std::to_string(ratio), set(stream, tag, value));
  }
  show("the NULL stream", set(nullptr, tag, window_of(a, 4096)));
  show("no bytes", set(stream, tag, window_of(a, 0)));
  show("nowhere, no bytes", set(stream, tag, window_of(0, 0)));
  show("all zeros", set(stream, tag, zeros()));
  show("a terabyte", set(stream, tag, window_of(a, std::size_t{1} << 40)));
  show("after those", CU(cuCtxSynchronize)());
}

// Windows of memory that belongs neither to the program nor to the device.
GROUP(stream_attributes_window_elsewhere, InContext) {
  constexpr auto tag = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  const CUstream stream = new_stream();
  CUdeviceptr a = 0;
  void* pinned = nullptr;
  char stack[64];
  CU(cuMemAlloc_v2)(&a, 1 << 20);
  CU(cuMemHostAlloc)(&pinned, 4096, 0);
  show("pinned memory", set(stream, tag, window_of(address_of(pinned), 4096)));
  show("beyond the end", set(stream, tag, window_of(a, 2 << 20)));
  show("the stack", set(stream, tag, window_of(address_of(stack), sizeof stack)));
  show("nowhere", set(stream, tag, window_of(0, 4096)));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(stream_attributes_copied, InContext) {
  const CUstream from = new_stream(), to = new_stream();
  CUstreamAttrValue value = zeros();
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  set(from, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value);
  show("copy", CU(cuStreamCopyAttributes)(to, from));
  get(to, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value);
  show("the policy", value.syncPolicy);
  show("to itself", CU(cuStreamCopyAttributes)(to, to));
  show("from the NULL stream", CU(cuStreamCopyAttributes)(to, nullptr));
  show("to the NULL stream", CU(cuStreamCopyAttributes)(nullptr, to));
  show("to the thread's", CU(cuStreamCopyAttributes)(CU_STREAM_PER_THREAD, to));
  show("_ptsz", CU(cuStreamCopyAttributes_ptsz)(nullptr, to));
  value.syncPolicy = CU_SYNC_POLICY_SPIN;
  show("_ptsz set", CU(cuStreamSetAttribute_ptsz)(to, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
}

GROUP(stream_attributes_of_another_context, InContext) {
  Two two;
  CUstreamAttrValue value = zeros();
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  show("set", set(two.in_a->stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
  show("get", get(two.in_a->stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value));
  show("copy from one context's to another's", CU(cuStreamCopyAttributes)(two.in_b->stream, two.in_a->stream));
}

GROUP(stream_attributes_null_get, InContext) {
  const CUstream stream = new_stream();
  show_guarded("get null",
               [&] { return CU(cuStreamGetAttribute)(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, nullptr); });
}

GROUP(stream_attributes_null_set, InContext) {
  const CUstream stream = new_stream();
  show_guarded("set null",
               [&] { return CU(cuStreamSetAttribute)(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, nullptr); });
}

}  // namespace
}  // namespace contract
