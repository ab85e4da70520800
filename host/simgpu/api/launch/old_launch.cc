// The launch calls of CUDA 3: the function object stores block shape, shared memory size and parameters until the
// launch.
#include "host/simgpu/api/cuda_api.h"

#include "host/simgpu/api/module/library.h"

using namespace simgpu;

namespace {

template <class F>
CUresult with_function(CUfunction handle, F&& call) {
  return with_context([&](Driver& driver, Context&) {
    CUresult error;
    const FunctionReference reference = resolve(driver, handle, &error);
    return reference.function == nullptr ? error : call(reference.function->old_launch);
  });
}

CUresult launch(CUfunction f, int width, int height, CUstream stream) {
  return with_function(f, [&](const cuabi::OldLaunch& old) {
    return old.launch(width, height, [&](const cuabi::OldLaunch::Asked& asked, void** extra) {
      const auto size = [](int n) { return static_cast<unsigned>(n); };
      return cuLaunchKernel(f, size(width), size(height), 1, size(asked.block[0]), size(asked.block[1]),
                            size(asked.block[2]), asked.shared, stream, nullptr, extra);
    });
  });
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set_block(x, y, z); });
}
CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned bytes) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set_shared(bytes); });
}
CUresult cuParamSetSize(CUfunction hfunc, unsigned numbytes) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set_size(numbytes); });
}
CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned value) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set(offset, &value, sizeof value); });
}
CUresult cuParamSetf(CUfunction hfunc, int offset, float value) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set(offset, &value, sizeof value); });
}
CUresult cuParamSetv(CUfunction hfunc, int offset, void* ptr, unsigned numbytes) {
  return with_function(hfunc, [&](cuabi::OldLaunch& old) { return old.set(offset, ptr, numbytes); });
}
CUresult cuLaunch(CUfunction f) { return launch(f, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
  return launch(f, grid_width, grid_height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return launch(f, grid_width, grid_height, hStream);
}
