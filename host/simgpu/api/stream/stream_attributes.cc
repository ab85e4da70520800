// Attributes of streams. They only affect performance, so the simulation stores them without effect.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <algorithm>
#include <cstring>

#include "host/simgpu/api/device/hints.h"
#include "host/simgpu/api/stream/streams.h"

using namespace simgpu;

namespace {

template <class F>
CUresult with_stream(CUstream handle, F&& call) {
  return with_context_of(handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ring::MutexLock order(driver.schedule.order());
    return call(context, *stream);
  });
}

// Checks and sets an attribute. cuda.h documents which attributes are valid for streams. Like an H200, this function
// refuses the attribute for NVLink.
CUresult set(Stream& stream, CUstreamAttrID attribute, const CUstreamAttrValue& value) {
  StreamAttributes& now = stream.attributes;
  const auto take = [](auto& member, const auto& from, bool valid) {
    if (valid) member = from;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return take(now.window, value.accessPolicyWindow, is_window(value.accessPolicyWindow));
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      return take(now.policy, value.syncPolicy,
                  value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return take(stream.priority, std::clamp(value.priority, greatest_stream_priority, 0), true);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return take(now.domains, value.memSyncDomainMap, is_domain_map(value.memSyncDomainMap));
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return take(now.domain, value.memSyncDomain, is_domain(value.memSyncDomain));
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult get(const Stream& stream, CUstreamAttrID attribute, CUstreamAttrValue& value) {
  const StreamAttributes& now = stream.attributes;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: value.accessPolicyWindow = now.window; break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      // copied as bytes, since the enumeration has no constant for "not set"
      std::memcpy(&value.syncPolicy, &now.policy, sizeof now.policy);
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value.priority = stream.priority; break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: value.memSyncDomainMap = now.domains; break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: value.memSyncDomain = now.domain; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  return with_stream(hStream, [&](Context&, const Stream& stream) {
    return value_out == nullptr ? CUDA_ERROR_INVALID_VALUE : get(stream, attr, *value_out);
  });
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value) {
  return with_stream(hStream, [&](Context&, Stream& stream) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : set(stream, attr, *value);
  });
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
  StreamAttributes copied;
  int priority = 0;
  Context* from = nullptr;
  const auto read = [&](Context& context, const Stream& stream) {
    copied = stream.attributes;
    priority = stream.priority;
    from = &context;
    return CUDA_SUCCESS;
  };
  if (const CUresult error = with_stream(src, read); error != CUDA_SUCCESS) return error;
  return with_stream(dst, [&](Context& context, Stream& stream) {
    if (&context != from) return CUDA_ERROR_INVALID_VALUE;
    stream.attributes = copied;
    stream.priority = priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetAttribute_ptsz(CUstream s, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return cuStreamGetAttribute(own(s), attribute, value);
}
CUresult cuStreamSetAttribute_ptsz(CUstream s, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  return cuStreamSetAttribute(own(s), attribute, value);
}
CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) { return cuStreamCopyAttributes(own(to), own(from)); }
