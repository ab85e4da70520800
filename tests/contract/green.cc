// Cases for green contexts and their resources. The number of multiprocessors depends on the device, so the cases show
// only relations between numbers.
#include <thread>

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

// Creates a green context with the smallest possible part of the device.
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
  CUdevResource all = all_of_device(), parts[2] = {zeros(), zeros()}, others[2];
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
}

// Each case has a process of its own, since a driver may not survive it.
GROUP(resources_of_none_described, InContext) {
  CUdevResource all = all_of_device();
  CUdevResourceDesc description = nullptr;
  show_guarded("none", [&] { return CU(cuDevResourceGenerateDesc)(&description, &all, 0); });
}
GROUP(resources_of_zeros_described, InContext) {
  CUdevResource nothing = zeros();
  CUdevResourceDesc description = nullptr;
  show_guarded("zeros", [&] { return CU(cuDevResourceGenerateDesc)(&description, &nothing, 1); });
}
GROUP(resources_described_nowhere, InContext) {
  CUdevResource all = all_of_device();
  CUdevResourceDesc description = nullptr;
  show_guarded("null", [&] { return CU(cuDevResourceGenerateDesc)(nullptr, &all, 1); });
  show_guarded("no resources", [&] { return CU(cuDevResourceGenerateDesc)(&description, nullptr, 1); });
}

GROUP(resources_counted, InContext) {
  const auto split = CU(cuDevSmResourceSplitByCount);
  const CUdevResource all = all_of_device();
  const unsigned least = all.sm.minSmPartitionSize, count = all.sm.smCount;
  CUdevResource parts[2] = {zeros(), zeros()}, rest = zeros();
  for (const unsigned before : {0U, 1U, 99U}) {
    unsigned groups = before;
    const std::string of = ", from " + std::to_string(before);
    show("how many" + of, split(nullptr, &groups, &all, nullptr, 0, least));
    show_flag("what the least fits in" + of, groups == count / least);
    show_flag("rounded up" + of, groups == (count + least - 1) / least);
    show_flag("as before" + of, groups == before);
  }
  unsigned groups = 99;
  show("how many, with a rest", split(nullptr, &groups, &all, &rest, 0, least));
  show("the rest's type", rest.type);
  groups = 99;
  show("how many of all", split(nullptr, &groups, &all, nullptr, 0, count));
  show("there are", groups);
  groups = 2;
  show("two of all", split(parts, &groups, &all, &rest, 0, count));
  show("are", groups);
  show_flag("all in one", parts[0].sm.smCount == count);
  show("type of what is left", rest.type);
  show("count of what is left", rest.sm.smCount);
  groups = 1;
  show("one without co-scheduling", split(parts, &groups, &all, &rest, 1, 1));
  show("has", parts[0].sm.smCount);
  show("at least", parts[0].sm.minSmPartitionSize);
  show("in steps of", parts[0].sm.smCoscheduledAlignment);
}

// The public members of a resource are read-only. The group shows the effect of changing them.
GROUP(resources_written_to, InContext) {
  CUdevResource all = all_of_device(), part = zeros(), has = zeros();
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  unsigned groups = 1;
  CUdevResource larger = all;
  larger.sm.smCount = 4096;
  show("a larger one", CU(cuDevSmResourceSplitByCount)(&part, &groups, &larger, nullptr, 0, 1));
  show("more than all of a larger one",
       CU(cuDevSmResourceSplitByCount)(&part, &groups, &larger, nullptr, 0, all.sm.smCount + 1));
  CU(cuDevSmResourceSplitByCount)(&part, &groups, &all, nullptr, 0, 1);
  const unsigned count = part.sm.smCount;
  part.sm.smCount = 2 * count;
  show("described", CU(cuDevResourceGenerateDesc)(&description, &part, 1));
  show("created", CU(cuGreenCtxCreate)(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  show("cuGreenCtxGetDevResource", CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("as it was", has.sm.smCount == count);
}

// A resource in which only the type is set, and a resource whose bytes no driver has written.
GROUP(resources_made_up, InContext) {
  CUdevResource made_up = zeros(), part = zeros();
  unsigned groups = 1;
  made_up.type = CU_DEV_RESOURCE_TYPE_SM;
  made_up.sm.smCount = 16;
  show_guarded("split", [&] { return CU(cuDevSmResourceSplitByCount)(&part, &groups, &made_up, nullptr, 0, 1); });
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

// The green context is made current through its handle as a context.
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

// Shows to which context objects belong that are created while a green context is current.
GROUP(green_context_owns, InContext) {
  const CUgreenCtx green = make_green();
  const CUcontext primary = current_context();
  CUcontext context = nullptr, of = nullptr;
  CUgreenCtx green_of = nullptr;
  CUstream stream = nullptr, blocking = nullptr;
  CUevent event = nullptr, other = nullptr;
  CUdeviceptr a = 0;
  unsigned flags = 0, version = 0, result = 0;
  unsigned long long id = 0, context_id = 0;
  std::size_t limit = 0;
  CU(cuEventCreate)(&other, 0);
  CU(cuCtxFromGreenCtx)(&context, green);
  CU(cuCtxSetCurrent)(context);
  show("cuMemAlloc", CU(cuMemAlloc_v2)(&a, 64));
  show("cuPointerGetAttribute", CU(cuPointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
  show_flag("it is the primary one's", of == primary);
  show("cuStreamCreate", CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  show("cuStreamCreate of a blocking one", CU(cuStreamCreate)(&blocking, 0));
  show("cuEventCreate", CU(cuEventCreate)(&event, 0));
  const CUfunction store = function_of(load_module(), "store");
  unsigned value = 21;
  void* parameters[] = {&a, &value};
  show("launch on the NULL stream", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  CU(cuMemcpyDtoH_v2)(&result, a, 4);
  show("stored", result);
  show("launch on a stream", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  show("cuEventRecord", CU(cuEventRecord)(event, stream));
  show("cuEventRecord of the primary one's event", CU(cuEventRecord)(other, stream));
  show("cuGreenCtxRecordEvent of the primary one's event", CU(cuGreenCtxRecordEvent)(green, other));
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(stream, &of));
  show_flag("the green one's name", of == context);
  show("cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(stream, &of, &green_of));
  show_flag("the primary one", of == primary);
  show_flag("and the green one", green_of == green);
  show("cuStreamGetCtx of the NULL stream", CU(cuStreamGetCtx)(nullptr, &of));
  show_flag("the green one's name", of == context);
  show("cuStreamGetCtx_v2 of the NULL stream", CU(cuStreamGetCtx_v2)(nullptr, &of, &green_of));
  show_flag("the primary one", of == primary);
  show_flag("and the green one", green_of == green);
  show("cuCtxGetFlags", CU(cuCtxGetFlags)(&flags));
  show("flags", flags);
  show("cuCtxGetApiVersion", CU(cuCtxGetApiVersion)(context, &version));
  show("version", version);
  show("cuCtxGetLimit", CU(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE));
  show("cuCtxGetId", CU(cuCtxGetId)(context, &context_id));
  CU(cuGreenCtxGetId)(green, &id);
  show_flag("it is the green one's", context_id == id);
  CU(cuCtxGetId)(primary, &id);
  show_flag("it is the primary one's", context_id == id);
  show("cuCtxRecordEvent", CU(cuCtxRecordEvent)(context, event));
  show("cuCtxWaitEvent", CU(cuCtxWaitEvent)(context, event));
  show("cuEventSynchronize", CU(cuEventSynchronize)(event));
  CU(cuStreamDestroy_v2)(stream);
  CU(cuStreamDestroy_v2)(blocking);
  CU(cuCtxSetCurrent)(primary);
  show("cuGreenCtxDestroy", CU(cuGreenCtxDestroy)(green));
  show("its event", CU(cuEventQuery)(event));
  show("its memory", CU(cuMemsetD8_v2)(a, 0, 64));
  show("its kernel in the primary one", CU(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("cuMemFree", CU(cuMemFree_v2)(a));
  show("after that", CU(cuCtxSynchronize)());
}

GROUP(green_context_resources, InContext) {
  const CUgreenCtx green = make_green();
  CUdevResource has = zeros(), same = zeros();
  CUcontext context = nullptr;
  CU(cuCtxFromGreenCtx)(&context, green);
  show("cuCtxGetDevResource", CU(cuCtxGetDevResource)(context, &same, CU_DEV_RESOURCE_TYPE_SM));
  CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM);
  show_flag("its own", has.sm.smCount == same.sm.smCount);
  show("type 0", CU(cuCtxGetDevResource)(context, &same, CU_DEV_RESOURCE_TYPE_INVALID));
  CUgreenCtx whole = nullptr;
  CU(cuGreenCtxCreate)(&whole, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM);
  show("of no description", CU(cuGreenCtxGetDevResource)(whole, &has, CU_DEV_RESOURCE_TYPE_SM));
  show_flag("all of the device", has.sm.smCount == all_of_device().sm.smCount);
}

GROUP(green_contexts_of_the_primary_one, Initialized) {
  CUcontext primary = nullptr;
  unsigned flags = 0;
  int active = 9;
  CUgreenCtx green = make_green();
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active with a green one", active);
  show("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain)(&primary, device));
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease_v2)(device));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active still", active);
  show("cuGreenCtxDestroy", CU(cuGreenCtxDestroy)(green));
  CU(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  show("active without", active);
}

GROUP(green_context_is_no_created_one, InContext) {
  const CUgreenCtx green = make_green();
  CUcontext context = nullptr;
  CU(cuCtxFromGreenCtx)(&context, green);
  show_guarded("cuCtxDestroy", [&] { return CU(cuCtxDestroy_v2)(context); });
}

// A thread has no per-thread stream in a green context.
GROUP(green_context_and_a_threads_stream, InContext) {
  const CUgreenCtx green = make_green();
  CUcontext context = nullptr, of = nullptr;
  CUgreenCtx green_of = nullptr;
  CU(cuCtxFromGreenCtx)(&context, green);
  CU(cuCtxSetCurrent)(context);
  show("cuStreamGetCtx_v2", CU(cuStreamGetCtx_v2)(CU_STREAM_PER_THREAD, &of, &green_of));
  show("cuStreamGetGreenCtx", CU(cuStreamGetGreenCtx)(CU_STREAM_PER_THREAD, &green_of));
  show("cuStreamGetCtx", CU(cuStreamGetCtx)(CU_STREAM_PER_THREAD, &of));
  show("cuStreamQuery", CU(cuStreamQuery)(CU_STREAM_PER_THREAD));
}

// cuda.h allows a green context to be current in only one thread at a time.
GROUP(green_context_in_two_threads, InContext) {
  const CUgreenCtx green = make_green();
  CUcontext context = nullptr;
  CUresult made_current = CUDA_ERROR_UNKNOWN, worked = CUDA_ERROR_UNKNOWN;
  CU(cuCtxFromGreenCtx)(&context, green);
  show("in one", CU(cuCtxSetCurrent)(context));
  std::thread([&] {
    made_current = CU(cuCtxSetCurrent)(context);
    worked = CU(cuCtxSynchronize)();
  }).join();
  show("in another", made_current);
  show("cuCtxSynchronize there", worked);
  show("cuCtxSynchronize in the first", CU(cuCtxSynchronize)());
}

// A green context is destroyed while it is current.
GROUP(green_context_gone, InContext) {
  const CUgreenCtx green = make_green();
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  CUdevice on = 9;
  CU(cuCtxFromGreenCtx)(&context, green);
  CU(cuCtxSetCurrent)(context);
  show("destroy", CU(cuGreenCtxDestroy)(green));
  show_flag("it is current still", current_context() == context);
  show_guarded("cuCtxGetDevice", [&] { return CU(cuCtxGetDevice)(&on); });
  show_guarded("cuMemAlloc", [&] { return CU(cuMemAlloc_v2)(&a, 64); });
  show_guarded("cuCtxSynchronize", [&] { return CU(cuCtxSynchronize)(); });
}

GROUP(green_contexts_after_a_reset, InContext) {
  const CUgreenCtx green = make_green();
  CUstream stream = nullptr;
  CU(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0);
  show("reset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show_guarded("cuStreamQuery", [&] { return CU(cuStreamQuery)(stream); });
  show_guarded("cuGreenCtxDestroy", [&] { return CU(cuGreenCtxDestroy)(green); });
}

GROUP(green_nothing_destroyed, InContext) { show("none", CU(cuGreenCtxDestroy)(nullptr)); }

GROUP(green_of_no_description, InContext) {
  CUgreenCtx green = nullptr;
  show_guarded("no description",
               [&] { return CU(cuGreenCtxCreate)(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM); });
}

// Streams of a green context are used after the green context was destroyed.
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
