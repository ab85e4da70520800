// Lookups: what is found in a module, a library or a kernel becomes an object here, which remembers what launches are
// checked and packed with; a global becomes device memory. The entry points of modules and libraries call it.
//
// Invariant: the guest proposes the id of what it looks up, and the worker answers with it, or with that of an earlier
// lookup of the same thing. One lookup at a time (Session::lookups): who finds another's object finds it complete.
// Trust: the reply is the worker's. Its id must be one that lives and is of the kind; a layout must lie within the
// parameter block, since launches write by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

// By a name, in a module or library. `found` is set where the result is CUDA_SUCCESS.
CUresult look_up(int call, api::Handle kind, Context& context, const Object& owner, const char* name, Object*& found);
// What an owner has exactly one of: a kernel's function, a library's module.
CUresult derive(int call, api::Handle kind, Context& context, const Object& owner, Object*& found);
// Either of `address` and `bytes` may be null.
CUresult find_global(int call, Context& context, const Object& owner, CUdeviceptr* address, std::size_t* bytes,
                     const char* name);

template <class Handle>
Handle handle_of_object(const Object& object) {
  return reinterpret_cast<Handle>(object.id.load(std::memory_order_relaxed));
}

}  // namespace guest
