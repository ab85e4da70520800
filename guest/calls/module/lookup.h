// Lookups in a module, a library or a kernel. A function found becomes an object here, which remembers what the guest
// needs to check and pack launches. A global becomes device memory. The entry points of modules and libraries call
// this.
//
// Invariant: the guest proposes the id of what it looks up, and the worker answers with it, or with that of an earlier
// lookup of the same thing. One lookup at a time (Session::lookups), so a thread that finds another thread's object
// finds it complete. Trust: the reply is the worker's. Its id must be that of a living object of the kind. A layout
// must lie within the parameter block, since launches write by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// Finds a function, or a texture or surface reference, by its name in a module or library. Sets `found` if the result is CUDA_SUCCESS.
CUresult look_up(int call, api::Handle kind, Context& context, const Object& owner, const char* name, Object*& found);
// Finds the one object that an owner has: a kernel's function, or a library's module.
CUresult derive(int call, api::Handle kind, Context& context, const Object& owner, Object*& found);
// Finds one of the things of a kind that an owner has, by its place among them: a module's function, an array's plane.
CUresult look_up_part(int call, api::Handle kind, Context& context, const Object& owner, unsigned which,
                      Object*& found);
// Finds a global. Each of `address` and `bytes` may be null.
CUresult find_global(int call, Context& context, const Object& owner, CUdeviceptr* address, std::size_t* bytes,
                     const char* name);

template <class Handle>
Handle handle_of_object(const Object& object) {
  return reinterpret_cast<Handle>(object.id.load(std::memory_order_relaxed));
}

// Fills `list` with the functions or kernels of an owner that has `count`, in the driver's order, as far as it has room.
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
