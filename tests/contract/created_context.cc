// Cases for created contexts: their creation, the current context afterwards, and the state that belongs to one
// context.
#include "tests/contract/contexts.h"

namespace contract {

CUcontext make_context(unsigned flags) {
  CUcontext made = nullptr;
  CU(cuCtxCreate_v2)(&made, flags, device);
  return made;
}

Objects::Objects() : context(current_context()), module(load_module()) {
  std::size_t size = 0;
  store = function_of(module, "store");
  empty = function_of(module, "empty");
  CU(cuModuleGetGlobal_v2)(&global, &size, module, "answer");
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
  CU(cuEventCreate)(&timed, 0);
  CU(cuMemAlloc_v2)(&memory, 64);
  CU(cuMemHostAlloc)(&pinned, 64, 0);
  CU(cuMemsetD32_v2)(memory, 7, 16);
  CU(cuEventRecord)(event, stream);
  CU(cuEventRecord)(timed, stream);
  CU(cuStreamSynchronize)(stream);
}

Two::Two() : a(make_context()) {
  in_a.emplace();
  b = make_context();
  in_b.emplace();
}

CUresult launch(CUfunction function, CUstream stream, CUdeviceptr out, unsigned value) {
  void* parameters[] = {&out, &value};
  return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

long long word_of(const void* pinned) { return pinned == nullptr ? 0 : *static_cast<const volatile unsigned*>(pinned); }

unsigned word_at(CUdeviceptr address) {
  unsigned value = 0;
  return CU(cuMemcpyDtoH_v2)(&value, address, sizeof value) == CUDA_SUCCESS ? value : 0;
}

namespace {

CUcontext show_making_with(unsigned flags) {
  CUcontext made = nullptr;
  show("cuCtxCreate flags " + std::to_string(flags), CU(cuCtxCreate_v2)(&made, flags, device));
  return made;
}

void show_made_with(unsigned flags) {
  const CUcontext made = show_making_with(flags);
  const std::string name = "flags " + std::to_string(flags);
  unsigned got = 999;
  show("cuCtxGetFlags of " + name, CU(cuCtxGetFlags)(&got));
  show("it is, of " + name, got);
  show("cuCtxDestroy of " + name, CU(cuCtxDestroy_v2)(made));
}

GROUP(created_flags, Initialized) {
  for (const unsigned flags : {0x0U, 0x1U, 0x2U, 0x4U, 0x8U, 0x10U, 0x80U, 0x9cU}) show_made_with(flags);
  for (const unsigned flags : {0x5U, 0x6U, 0x7U, 0x100U, 0x80000000U}) show_making_with(flags);
}

GROUP(created_flags_of_core_dumps, Initialized) {
  for (const unsigned flags : {0x20U, 0x40U, 0x60U}) show_made_with(flags);
}

void end(CUcontext made) {
  if (made != nullptr) CU(cuCtxDestroy_v2)(made);
}

GROUP(created_with_affinity, Initialized) {
  CUcontext made = nullptr;
  CUexecAffinityParam params[2];
  std::memset(params, 0, sizeof params);
  const auto ask = [&](const std::string& what, CUexecAffinityParam* affinity, int count, int type, unsigned sms) {
    made = nullptr;
    params[0].type = params[1].type = odd<CUexecAffinityType>(type);
    params[0].param.smCount.val = params[1].param.smCount.val = sms;
    show("cuCtxCreate_v3 " + what, CU(cuCtxCreate_v3)(&made, affinity, count, 0, device));
    show_flag("made with " + what, made != nullptr);
    end(made);
  };
  ask("8 multiprocessors", params, 1, 0, 8);
  ask("0 multiprocessors", params, 1, 0, 0);
  ask("a million multiprocessors", params, 1, 0, 1000000);
  ask("twice the same", params, 2, 0, 8);
  ask("type 1", params, 1, 1, 8);
  ask("count 0", params, 0, 0, 8);
  ask("count -1", params, -1, 0, 8);
  ask("null, count 1", nullptr, 1, 0, 8);
  int supported = 9;
  show("cuDeviceGetExecAffinitySupport",
       CU(cuDeviceGetExecAffinitySupport)(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
  show("it is", supported);
  show("cuCtxGetExecAffinity without context", CU(cuCtxGetExecAffinity)(params, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  make_context();
  show("cuCtxGetExecAffinity", CU(cuCtxGetExecAffinity)(params, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  show("cuCtxGetExecAffinity type 1", CU(cuCtxGetExecAffinity)(params, odd<CUexecAffinityType>(1)));
  show("cuCtxGetExecAffinity null", CU(cuCtxGetExecAffinity)(nullptr, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
}

GROUP(created_with_params, Initialized) {
  CUcontext made = nullptr;
  CUctxCreateParams params;
  CUexecAffinityParam affinity;
  CUctxCigParam cig;
  std::memset(&params, 0, sizeof params);
  std::memset(&affinity, 0, sizeof affinity);
  std::memset(&cig, 0, sizeof cig);
  const auto ask = [&](const std::string& what, unsigned flags = 0) {
    made = nullptr;
    show_guarded("cuCtxCreate_v4 " + what, [&] { return CU(cuCtxCreate_v4)(&made, &params, flags, device); });
    show_flag("made with " + what, made != nullptr);
    end(made);
  };
  ask("empty");
  ask("empty, flags nonsense", 0x7000);
  params.numExecAffinityParams = 1;
  ask("count 1 of none");
  affinity.param.smCount.val = 8;
  params.execAffinityParams = &affinity;
  ask("8 multiprocessors");
  params.numExecAffinityParams = 0;
  ask("an affinity, count 0");
  params.cigParams = &cig;
  ask("both");
  params.execAffinityParams = nullptr;
  for (const int type : {0, 1, 2, 99}) {
    cig.sharedDataType = odd<CUcigDataType>(type);
    ask("graphics of type " + std::to_string(type));
  }
}

GROUP(created_api_versions, Initialized) {
  CUcontext made = nullptr, primary = nullptr;
  CUctxCreateParams params;
  std::memset(&params, 0, sizeof params);
  const auto ask = [&](const std::string& what, CUcontext context) {
    unsigned version = 0;
    show("cuCtxGetApiVersion " + what, CU(cuCtxGetApiVersion)(context, &version));
    show("it is, " + what, version);
  };
  CU(cuCtxCreate_v2)(&made, 0, device);
  ask("of v2", made);
  CU(cuCtxCreate_v3)(&made, nullptr, 0, 0, device);
  ask("of v3", made);
  CU(cuCtxCreate_v4)(&made, nullptr, 0, device);
  ask("of v4", made);
  CU(cuDevicePrimaryCtxRetain)(&primary, device);
  ask("of the primary", primary);
  ask("of the current", nullptr);
}

GROUP(created_stack, InContext) {
  const CUcontext primary = current_context();
  const CUcontext a = make_context();
  show_flag("a new one is current", current_context() == a && a != primary);
  const CUcontext b = make_context();
  show_flag("two of a device", b != a && current_context() == b);
  CUcontext popped = nullptr;
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("the second; the first is below", popped == b && current_context() == a);
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("the first; the primary is below", popped == a && current_context() == primary);
  show("cuCtxPushCurrent a", CU(cuCtxPushCurrent_v2)(a));
  show("cuCtxPushCurrent a again", CU(cuCtxPushCurrent_v2)(a));
  show("cuCtxSetCurrent b", CU(cuCtxSetCurrent)(b));
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("set replaces the top", popped == b && current_context() == a);
  show("cuCtxSetCurrent null", CU(cuCtxSetCurrent)(nullptr));
  show_flag("the primary is below", current_context() == primary);
  show("cuCtxSetCurrent null", CU(cuCtxSetCurrent)(nullptr));
  show("cuCtxPopCurrent of none", CU(cuCtxPopCurrent_v2)(&popped));
  const CUcontext c = make_context();
  show_flag("one made on an empty stack", current_context() == c);
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&popped));
  show_flag("then none", popped == c && current_context() == nullptr);
}

GROUP(created_ids, InContext) {
  unsigned long long primary = 0, a = 0, b = 0, c = 0, again = 0;
  CU(cuCtxGetId)(nullptr, &primary);
  const CUcontext first = make_context(), second = make_context();
  show("cuCtxGetId", CU(cuCtxGetId)(first, &a));
  CU(cuCtxGetId)(second, &b);
  CU(cuCtxGetId)(nullptr, &again);
  show_flag("the current one's", again == b);
  show_flag("greater than the primary's", a > primary);
  show_flag("increasing", b > a);
  CU(cuCtxDestroy_v2)(second);
  const CUcontext third = make_context();
  CU(cuCtxGetId)(third, &c);
  show_flag("never used again", c > b);
}

GROUP(attached, Initialized) {
  CUcontext context = reinterpret_cast<CUcontext>(1), primary = nullptr;
  show("cuCtxAttach without context", CU(cuCtxAttach)(&context, 0));
  show("cuCtxDetach null", CU(cuCtxDetach)(nullptr));
  const CUcontext made = make_context();
  show("cuCtxAttach", CU(cuCtxAttach)(&context, 0));
  show_flag("the current one", context == made);
  show("cuCtxAttach flags 1", CU(cuCtxAttach)(&context, 1));
  show("cuCtxAttach null", CU(cuCtxAttach)(nullptr, 0));
  show("cuCtxDetach", CU(cuCtxDetach)(made));
  show_flag("still current", current_context() == made);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuCtxDetach the last", CU(cuCtxDetach)(made));
  show_flag("then none is current", current_context() == nullptr);
  CU(cuDevicePrimaryCtxRetain)(&primary, device);
  CU(cuCtxSetCurrent)(primary);
  show("cuCtxAttach of the primary", CU(cuCtxAttach)(&context, 0));
  show("cuCtxDetach of the primary", CU(cuCtxDetach)(primary));
  show("cuCtxDetach of the primary again", CU(cuCtxDetach)(primary));
  show_flag("the primary is current", current_context() == primary);
  show("cuCtxSynchronize of the primary", CU(cuCtxSynchronize)());
}

GROUP(attached_and_destroyed, Initialized) {
  CUcontext context = nullptr;
  const CUcontext made = make_context(), other = make_context();
  show("cuCtxDetach of one not current", CU(cuCtxDetach)(made));
  CU(cuCtxAttach)(&context, 0);
  CU(cuCtxAttach)(&context, 0);
  show("cuCtxDestroy of one attached twice", CU(cuCtxDestroy_v2)(other));
  show_flag("is it current", current_context() == other);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show_guarded("cuCtxDetach of the destroyed", [&] { return CU(cuCtxDetach)(other); });
}

}  // namespace
}  // namespace contract
