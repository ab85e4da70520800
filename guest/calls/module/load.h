// Loads an image as a module or a library, and unloads it with everything that has come from it. The entry points of
// modules and libraries call this.
//
// Invariant: an unloaded object takes along each handle that was looked up in it, and each that was looked up in those.
// Their ids are used again once the unloading was executed. The id of a load whose wait was given up is never used
// again. Trust: the worker gives a result and the options' values. It gives no handle, since the guest has chosen the
// id.
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
