// Loads an image as a module or a library, and unloads it with everything that was found in it. The entry points of
// modules and libraries call this.
//
// Invariant: unloading an object retires each handle that was looked up in it, recursively. Their ids are reused once
// the worker has executed the unloading. If the guest gave up waiting for a load, it never reuses the load's id. Trust:
// the worker returns a result and the options' values, but no handle, since the guest has chosen the id.
#pragma once

#include <cstdint>

#include "guest/calls/module/jit_options.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

// Sets `loaded` if the result is CUDA_SUCCESS.
CUresult load(int call, api::Handle kind, Context& context, const void* code, const JitOptions& options,
              Object*& loaded);
CUresult unload(int call, Context& context, Object& object);

}  // namespace guest
