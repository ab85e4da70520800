// Makes every served call of ring/api/driver.def with null pointers and zeros, in each state of a process. The answers
// show in which order a driver checks state and arguments. New calls of the table are included automatically.
#include <string_view>

#include "tests/contract/suite.h"

namespace contract {
namespace {

// Even with null arguments, these calls change the state that the next call must find.
constexpr std::string_view left_out[] = {
    "cuInit",          "cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent", "cuCtxPopCurrent_v2"};

template <class... P>
void call_with_nothing(const char* name, CUresult (*)(P...)) {
  for (const std::string_view out : left_out)
    if (out == name) return;
  const auto function = reinterpret_cast<CUresult (*)(P...)>(symbol(name));
  show_guarded(name, [&] { return function(P{}...); });
}

void call_everything() {
#define CALL(id, fn, ...) call_with_nothing(#fn, static_cast<decltype(&::fn)>(nullptr));
#define CUSTOM(id, fn, ...) call_with_nothing(#fn, static_cast<decltype(&::fn)>(nullptr));
#define LOCAL(fn, ...) call_with_nothing(#fn, static_cast<decltype(&::fn)>(nullptr));
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}

GROUP(nothing_before_init, Loaded) { call_everything(); }
GROUP(nothing_without_context, Initialized) { call_everything(); }
GROUP(nothing_in_a_context, InContext) { call_everything(); }

GROUP(nothing_after_a_reset, InContext) {
  CU(cuDevicePrimaryCtxReset_v2)(device);
  call_everything();
}

GROUP(nothing_after_a_fault, InContext) {
  CU(cuLaunchKernel)(function_of(load_module(), "stop"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  show("cuCtxSynchronize, first", CU(cuCtxSynchronize)());
  call_everything();
}

GROUP(nothing_after_fork, InContext) {
  CU(cuCtxSynchronize)();
  in_a_child([] {
    show("cuInit", CU(cuInit)(0));
    call_everything();
  });
  show("the parent goes on", CU(cuCtxSynchronize)());
}

// Makes the calls that are excluded above. In this state they are refused and change nothing.
void call_what_changes_the_state() {
  CUcontext context = nullptr;
  show("cuCtxSetCurrent", CU(cuCtxSetCurrent)(nullptr));
  show("cuCtxPopCurrent_v2", CU(cuCtxPopCurrent_v2)(&context));
  show("cuDevicePrimaryCtxRelease", CU(cuDevicePrimaryCtxRelease)(device));
  show("cuDevicePrimaryCtxRelease_v2", CU(cuDevicePrimaryCtxRelease_v2)(device));
  show("cuDevicePrimaryCtxReset_v2", CU(cuDevicePrimaryCtxReset_v2)(device));
}

GROUP(changes_before_init, Loaded) { call_what_changes_the_state(); }

GROUP(changes_after_fork, InContext) {
  in_a_child([] {
    show("cuInit", CU(cuInit)(0));
    call_what_changes_the_state();
  });
  show("the parent goes on", CU(cuCtxSynchronize)());
}

// A process forks before its first CUDA call, so both processes start without a driver state.
GROUP(fork_before_init, Loaded) {
  in_a_child([] {
    int count = 0;
    show("cuInit", CU(cuInit)(0));
    show("cuDeviceGetCount", CU(cuDeviceGetCount)(&count));
  });
  show("cuInit of the parent", CU(cuInit)(0));
}

}  // namespace

std::set<std::string> calls_that_change_the_state() { return {std::begin(left_out), std::end(left_out)}; }

}  // namespace contract
