// Lookups in a module, a library or a kernel. A found function becomes an object, which holds the data to check and
// pack launches. A global becomes device memory. The entry points of modules and libraries call this.
//
// Invariant: the guest proposes an id, and the worker answers with that id, or with the id of an earlier lookup of the
// same thing. One lookup runs at a time (Session::lookups), so a thread that finds another thread's object finds it
// complete. Trust: the reply is the worker's. Its id must name a living object of the kind. A layout must lie within
// the parameter block, since launches write by it.
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
// Finds an owner's only object of a kind: a kernel's function, or a library's module.
CUresult derive(int call, api::Handle kind, Context& context, const Object& owner, Object*& found);
// Finds one of an owner's objects of a kind by its index: a module's function, an array's plane.
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
