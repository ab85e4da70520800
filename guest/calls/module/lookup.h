// Lookups in a module, a library or a kernel. The guest makes an object for a function; the object has the data to
// check and pack launches. The guest records a global as device memory. The entry points of modules and libraries call
// these functions.
//
// Invariant: the guest proposes an id. The worker answers with that id, or with the id of an earlier lookup of the same
// object. One lookup runs at a time (Session::lookups), so a thread that finds another thread's object finds it
// complete. Trust: the reply is the worker's. The reply's id must belong to a living object of the right kind. A
// parameter layout must lie within the parameter block, since launches write parameters at the offsets of the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// Finds a function, or a texture or surface reference, by name in a module or library. Sets `found` on CUDA_SUCCESS.
CUresult look_up(int call, api::Handle kind, Context& context, const Object& owner, const char* name, Object*& found);
// Finds the owner's only object of a kind: the function of a kernel, or the module of a library.
CUresult derive(int call, api::Handle kind, Context& context, const Object& owner, Object*& found);
// Finds one of the owner's objects of a kind by its index: a function of a module, or a plane of an array.
CUresult look_up_part(int call, api::Handle kind, Context& context, const Object& owner, unsigned which,
                      Object*& found);
// Finds a global. `address` and `bytes` may be null.
CUresult find_global(int call, Context& context, const Object& owner, CUdeviceptr* address, std::size_t* bytes,
                     const char* name);

template <class Handle>
Handle handle_of_object(const Object& object) {
  return reinterpret_cast<Handle>(object.id.load(std::memory_order_relaxed));
}

// Fills `list` with up to `room` of the owner's `count` functions or kernels, in the driver's order.
template <class Handle>
CUresult fill_list(int call, api::Handle kind, Context& context, const Object& owner, unsigned count, Handle* list,
                   unsigned room) {
  for (unsigned i = 0; i < count && i < room; ++i) {
    Object* found = nullptr;
    if (const CUresult r = look_up_part(call, kind, context, owner, i, found); r != CUDA_SUCCESS) return r;
    list[i] = handle_of_object<Handle>(*found);
  }
  return CUDA_SUCCESS;
}

}  // namespace guest
