// Green contexts and the resources that they are made of. How many multiprocessors there are is the device's affair, so
// only relations between numbers are shown.
#include "tests/contract/suite.h"

namespace contract {
namespace {

CUdevResource zeros() {
  CUdevResource resource;
  std::memset(&resource, 0, sizeof resource);
  return resource;
}

CUdevResource all_of_device() {
  CUdevResource all = zeros();
  CU(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM);
  return all;
}

// A green context of the smallest part that there is.
CUgreenCtx make_green() {
  CUdevResource all = all_of_device(), part = zeros(), rest = zeros();
  unsigned groups = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CU(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 1);
  CU(cuDevResourceGenerateDesc)(&description, &part, 1);
  CU(cuGreenCtxCreate)(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  return green;
}

GROUP(resources, InContext) {
  CUdevResource all = zeros(), again = zeros();
  show("of the device", CU(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  show("its type", all.type);
  int multiprocessors = 0;
  CU(cuDeviceGetAttribute)(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  show_flag("all multiprocessors", all.sm.smCount == static_cast<unsigned>(multiprocessors));
  show("the least part", all.sm.minSmPartitionSize);
  show("in steps of", all.sm.smCoscheduledAlignment);
  show("of the context", CU(cuCtxGetDevResource)(current_context(), &again, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("as many", again.sm.smCount == all.sm.smCount);
  show("of the current context", CU(cuCtxGetDevResource)(nullptr, &again, CU_DEV_RESOURCE_TYPE_SM));
  for (const int type : {-1, 0, 2, 3, 99})
    show("type " + std::to_string(type), CU(cuDeviceGetDevResource)(device, &all, odd<CUdevResourceType>(type)));
  show("device 99", CU(cuDeviceGetDevResource)(99, &all, CU_DEV_RESOURCE_TYPE_SM));
  show("device -1", CU(cuDeviceGetDevResource)(-1, &all, CU_DEV_RESOURCE_TYPE_SM));
  show("null", CU(cuDeviceGetDevResource)(device, nullptr, CU_DEV_RESOURCE_TYPE_SM));
  show("of the context, null", CU(cuCtxGetDevResource)(current_context(), nullptr, CU_DEV_RESOURCE_TYPE_SM));
  show("of no green context", CU(cuGreenCtxGetDevResource)(nullptr, &all, CU_DEV_RESOURCE_TYPE_SM));
}

GROUP(resources_without_a_context, Initialized) {
  CUdevResource all = zeros();
  show("of the device", CU(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  show("of no context", CU(cuCtxGetDevResource)(nullptr, &all, CU_DEV_RESOURCE_TYPE_SM));
}

GROUP(resources_split, InContext) {
  const auto split = CU(cuDevSmResourceSplitByCount);
  const CUdevResource all = all_of_device();
  CUdevResource parts[2] = {zeros(), zeros()}, rest = zeros();
  unsigned groups = 99;
  show("how many", split(nullptr, &groups, &all, nullptr, 0, 1));
  show_flag("as many as fit", groups * all.sm.minSmPartitionSize <= all.sm.smCount && groups != 0);
  groups = 1;
  show("one", split(parts, &groups, &all, &rest, 0, 1));
  show("groups", groups);
  show("type", parts[0].type);
  show_flag("of the least size", parts[0].sm.smCount == all.sm.minSmPartitionSize);
  show("the rest's type", rest.type);
  show_flag("nothing is lost", parts[0].sm.smCount + rest.sm.smCount == all.sm.smCount);
  groups = 2;
  show("two of one more than the least", split(parts, &groups, &all, &rest, 0, all.sm.minSmPartitionSize + 1));
  show_flag("rounded up", parts[0].sm.smCount == 2 * all.sm.minSmPartitionSize);
  groups = 1;
  show("all", split(parts, &groups, &all, &rest, 0, all.sm.smCount));
  groups = 1;
  show("more than all", split(parts, &groups, &all, &rest, 0, all.sm.smCount + 1));
  groups = 1;
  show("of size 0", split(parts, &groups, &all, &rest, 0, 0));
  groups = 0;
  show("no group", split(parts, &groups, &all, &rest, 0, 1));
  groups = 1;
  show("no rest", split(parts, &groups, &all, nullptr, 0, 1));
  for (const unsigned flags : {1U, 2U, 3U, 4U, 8U}) {
    groups = 1;
    show("flags " + std::to_string(flags), split(parts, &groups, &all, &rest, flags, 1));
  }
}

GROUP(resources_split_badly, InContext) {
  const auto split = CU(cuDevSmResourceSplitByCount);
  const CUdevResource all = all_of_device(), nothing = zeros();
  CUdevResource part = zeros(), rest = zeros(), again = zeros();
  unsigned groups = 1;
  show("zeros", split(&part, &groups, &nothing, &rest, 0, 1));
  groups = 1;
  CU(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 1);
  groups = 1;
  show("a part", split(&again, &groups, &part, nullptr, 0, 1));
  groups = 1;
  show("a rest", split(&again, &groups, &rest, nullptr, 0, 1));
  show_guarded("no input", [&] { return split(&part, &groups, nullptr, &rest, 0, 1); });
  show_guarded("no number of groups", [&] { return split(&part, nullptr, &all, &rest, 0, 1); });
}

GROUP(resources_described, InContext) {
  const auto describe = CU(cuDevResourceGenerateDesc);
  CUdevResource all = all_of_device(), nothing = zeros(), parts[2] = {zeros(), zeros()}, others[2];
  CUdevResourceDesc description = nullptr;
  unsigned groups = 2;
  CU(cuDevSmResourceSplitByCount)(parts, &groups, &all, nullptr, 0, 1);
  show("all", describe(&description, &all, 1));
  show("a part", describe(&description, parts, 1));
  show("two parts", describe(&description, parts, 2));
  others[0] = parts[0];
  groups = 1;
  CU(cuDevSmResourceSplitByCount)(&others[1], &groups, &all, nullptr, 0, 1);
  show("parts of two splits", describe(&description, others, 2));
  others[1] = all;
  show("a part and all", describe(&description, others, 2));
  show("none", describe(&description, parts, 0));
  show("zeros", describe(&description, &nothing, 1));
  show("null", describe(nullptr, parts, 1));
  show_guarded("no resources", [&] { return describe(&description, nullptr, 1); });
}

GROUP(green_contexts, InContext) {
  const auto create = CU(cuGreenCtxCreate);
  CUdevResource all = all_of_device(), has = zeros();
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr, other = nullptr;
  unsigned long long id = 0, other_id = 0, primary_id = 0;
  CU(cuDevResourceGenerateDesc)(&description, &all, 1);
  show("create", create(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  show("flags 0", create(&other, description, device, 0));
  show("flags 3", create(&other, description, device, 3));
  show("device 99", create(&other, description, 99, CU_GREEN_CTX_DEFAULT_STREAM));
  show("null", create(nullptr, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  show("a second one of the same", create(&other, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  show("resources", CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("all of them", has.sm.smCount == all.sm.smCount);
  show("resources of type 0", CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_INVALID));
  show("resources null", CU(cuGreenCtxGetDevResource)(green, nullptr, CU_DEV_RESOURCE_TYPE_SM));
  show("id", CU(cuGreenCtxGetId)(green, &id));
  CU(cuGreenCtxGetId)(other, &other_id);
  CU(cuCtxGetId)(nullptr, &primary_id);
  show_flag("all ids differ", id != other_id && id != primary_id && other_id != primary_id);
  show("id null", CU(cuGreenCtxGetId)(green, nullptr));
  show("id of none", CU(cuGreenCtxGetId)(nullptr, &id));
  show("destroy", CU(cuGreenCtxDestroy)(green));
  show("destroy the other", CU(cuGreenCtxDestroy)(other));
  show("after those", CU(cuCtxSynchronize)());
}

GROUP(green_context_of_a_part, InContext) {
  const CUdevResource all = all_of_device();
  CUdevResource has = zeros(), part = zeros();
  unsigned groups = 0;
  const CUgreenCtx green = make_green();
  show("resources", CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("the least part", has.sm.smCount == all.sm.minSmPartitionSize);
  show("a part of the part", CU(cuDevSmResourceSplitByCount)(nullptr, &groups, &has, nullptr, 0, 1));
  show("groups", groups);
  groups = 1;
  show("with less alignment", CU(cuDevSmResourceSplitByCount)(&part, &groups, &has, nullptr, 1, 1));
}

// Made current by its name as a context.
GROUP(green_context_current, InContext) {
  const CUgreenCtx green = make_green();
  const CUcontext primary = current_context();
  CUcontext context = nullptr, again = nullptr, popped = nullptr;
  CUgreenCtx of = nullptr;
  CUstream stream = nullptr;
  CUdevResource has = zeros(), same = zeros();
  CUdevice on = 9;
  unsigned long long id = 0, current_id = 0;
  show("cuCtxFromGreenCtx", CU(cuCtxFromGreenCtx)(&context, green));
  CU(cuCtxFromGreenCtx)(&again, green);
  show_flag("the same each time", context == again);
  show_flag("not the primary one's", context != primary);
  show("cuCtxFromGreenCtx null", CU(cuCtxFromGreenCtx)(nullptr, green));
  show("cuCtxFromGreenCtx of none", CU(cuCtxFromGreenCtx)(&again, nullptr));
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(context));
  show_flag("it is current", current_context() == context);
  show("cuCtxGetDevice", CU(cuCtxGetDevice)(&on));
  CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM);
  show("cuCtxGetDevResource", CU(cuCtxGetDevResource)(nullptr, &same, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("its own", has.sm.smCount == same.sm.smCount);
  show("id of the current one", CU(cuGreenCtxGetId)(nullptr, &current_id));
  CU(cuGreenCtxGetId)(green, &id);
  show_flag("it is its", id == current_id);
  show("of the NULL stream", CU(cuStreamGetGreenCtx)(nullptr, &of));
  show_flag("the green one", of == green);
  show("cuStreamCreate", CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  show("of that", CU(cuStreamGetGreenCtx)(stream, &of));
  show_flag("the green one", of == green);
  show("cuStreamCreate of a blocking one", CU(cuStreamCreate)(&stream, 0));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("the green one's name", popped == context);
  CU(cuCtxSetCurrent)(primary);
  show("of the NULL stream in the primary context", CU(cuStreamGetGreenCtx)(nullptr, &of));
  show_flag("none", of == nullptr);
}

GROUP(green_streams, InContext) {
  const auto create = CU(cuGreenCtxStreamCreate);
  const CUgreenCtx green = make_green();
  CUstream stream = nullptr, plain = nullptr;
  CUgreenCtx of = nullptr;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  CUdeviceptr a = 0;
  unsigned flags = 9, result = 0;
  int priority = 9;
  CU(cuMemAlloc_v2)(&a, 64);
  CU(cuEventCreate)(&event, 0);
  CU(cuStreamCreate)(&plain, 0);
  show("create", create(&stream, green, CU_STREAM_NON_BLOCKING, -1));
  show("flags 0", create(&plain, green, 0, 0));
  show("flags 2", create(&plain, green, 2, 0));
  show("null", create(nullptr, green, CU_STREAM_NON_BLOCKING, 0));
  show("of none", create(&plain, nullptr, CU_STREAM_NON_BLOCKING, 0));
  CU(cuStreamGetFlags)(stream, &flags);
  show("its flags", flags);
  CU(cuStreamGetPriority)(stream, &priority);
  show("its priority", priority);
  show("cuStreamGetGreenCtx", CU(cuStreamGetGreenCtx)(stream, &of));
  show_flag("the green one", of == green);
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(stream, &context));
  show("cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(stream, &context, &of));
  show_flag("the green one", of == green);
  show("fill", CU(cuMemsetD32Async)(a, 7, 16, stream));
  const CUfunction store = function_of(load_module(), "store");
  unsigned value = 11;
  void* parameters[] = {&a, &value};
  show("launch", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  show("cuGreenCtxRecordEvent", CU(cuGreenCtxRecordEvent)(green, event));
  show("cuEventSynchronize", CU(cuEventSynchronize)(event));
  CU(cuMemcpyDtoH_v2)(&result, a, 4);
  show("stored", result);
  show("cuGreenCtxWaitEvent", CU(cuGreenCtxWaitEvent)(green, event));
  show("cuGreenCtxRecordEvent no event", CU(cuGreenCtxRecordEvent)(green, nullptr));
  show("cuGreenCtxRecordEvent of none", CU(cuGreenCtxRecordEvent)(nullptr, event));
  show("cuGreenCtxWaitEvent no event", CU(cuGreenCtxWaitEvent)(green, nullptr));
  show("cuGreenCtxWaitEvent of none", CU(cuGreenCtxWaitEvent)(nullptr, event));
  show("cuStreamDestroy", CU(cuStreamDestroy_v2)(stream));
  show("cuGreenCtxDestroy", CU(cuGreenCtxDestroy)(green));
}

GROUP(green_questions_of_streams, InContext) {
  CUstream stream = nullptr;
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&stream);
  CU(cuStreamCreate)(&stream, 0);
  show("of a plain stream", CU(cuStreamGetGreenCtx)(stream, &green));
  show_flag("none", green == nullptr);
  show("of the legacy stream", CU(cuStreamGetGreenCtx)(CU_STREAM_LEGACY, &green));
  show("of the thread's", CU(cuStreamGetGreenCtx)(CU_STREAM_PER_THREAD, &green));
  show("null", CU(cuStreamGetGreenCtx)(stream, nullptr));
}

GROUP(green_nothing_destroyed, InContext) { show("none", CU(cuGreenCtxDestroy)(nullptr)); }

GROUP(green_of_no_description, InContext) {
  CUgreenCtx green = nullptr;
  show_guarded("no description",
               [&] { return CU(cuGreenCtxCreate)(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM); });
}

// Of a green context that is gone.
GROUP(green_streams_left_over, InContext) {
  const CUgreenCtx green = make_green();
  CUstream stream = nullptr;
  CU(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0);
  show("destroy", CU(cuGreenCtxDestroy)(green));
  show_guarded("cuStreamQuery", [&] { return CU(cuStreamQuery)(stream); });
  show_guarded("cuStreamDestroy", [&] { return CU(cuStreamDestroy_v2)(stream); });
}

}  // namespace
}  // namespace contract
