// The launch calls of CUDA 3. A function object stores block size, shared memory and parameters until cuLaunch sends an
// ordinary launch.
#include "guest/calls/calls.h"
#include "guest/calls/find_function.h"
#include "guest/process/process.h"

namespace guest::calls {
namespace {

template <class F>
CUresult with_function(CUfunction f, F&& call) {
  Context* context = nullptr;
  if (const CUresult r = enter(context, {f}); r != CUDA_SUCCESS) return r;
  Object* object = nullptr;
  if (const CUresult r = find_function(f, api::Handle::Function, object); r != CUDA_SUCCESS) return r;
  return call(object->function->old_launch);
}

CUresult launch(CUfunction f, int width, int height, CUstream stream) {
  return with_function(f, [&](const cuabi::OldLaunch& old) {
    return old.launch(width, height, [&](const cuabi::OldLaunch::Asked& asked, void** extra) {
      const auto size = [](int n) { return static_cast<unsigned>(n); };
      return calls::cuLaunchKernel(f, size(width), size(height), 1, size(asked.block[0]), size(asked.block[1]),
                                   size(asked.block[2]), asked.shared, stream, nullptr, extra);
    });
  });
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set_block(x, y, z); });
}

CUresult cuFuncSetSharedSize(CUfunction f, unsigned bytes) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set_shared(bytes); });
}

CUresult cuParamSetSize(CUfunction f, unsigned bytes) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set_size(bytes); });
}

CUresult cuParamSeti(CUfunction f, int offset, unsigned value) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set(offset, &value, sizeof value); });
}

CUresult cuParamSetf(CUfunction f, int offset, float value) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set(offset, &value, sizeof value); });
}

CUresult cuParamSetv(CUfunction f, int offset, void* from, unsigned bytes) {
  return with_function(f, [&](cuabi::OldLaunch& old) { return old.set(offset, from, bytes); });
}

CUresult cuLaunch(CUfunction f) { return launch(f, 1, 1, nullptr); }

CUresult cuLaunchGrid(CUfunction f, int width, int height) { return launch(f, width, height, nullptr); }

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return launch(f, width, height, stream);
}

}  // namespace guest::calls
