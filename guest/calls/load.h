// Loading an image as a module or a library, and unloading it with everything that has come from it. The entry points
// of modules and libraries call it.
//
// Invariant: what is unloaded takes along each handle that was looked up in it, and that from it in turn; the ids are
// used again once the unloading was executed. Where the wait for a load's reply was given up, its id is never used
// again.
// Trust: the worker gives a result and the options' values, and no handle: the guest has chosen the id.
#pragma once

#include <cstdint>

#include "guest/calls/jit_options.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

// `loaded` is set where the result is CUDA_SUCCESS.
CUresult load(int call, api::Handle kind, Context& context, const void* code, const JitOptions& options,
              Object*& loaded);
CUresult unload(int call, Context& context, Object& object);

}  // namespace guest
