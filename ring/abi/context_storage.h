// Context-local storage: data that NVIDIA's runtime keeps for each context (export table CONTEXT_LOCAL_STORAGE).
//
// The semantics are the real driver's: a second put of a key is refused and keeps the first value. The end of a context
// runs the destructor, delete does not. Keys and values belong to the runtime; this library neither owns nor reads
// them. Any thread may call these functions. The runtime calls get in each of its calls, launches included, so get
// takes no lock and writes nothing.
//
// ```cpp
// void* stored(CUcontext context, void* key) {
//   void* value = nullptr;
//   return cuabi::storage_get(&value, context, key) == CUDA_SUCCESS ? value : nullptr;
// }
// ```
#pragma once

#include <cuda.h>

namespace cuabi {

using StorageDestructor = void (*)(CUcontext context, void* key, void* value);

// Stores a value. A `context` of NULL (or all ones) means the calling thread's current context; if there is none, the
// result is INVALID_CONTEXT.
CUresult storage_put(CUcontext context, void* key, void* value, StorageDestructor destructor);
CUresult storage_delete(CUcontext context, void* key);
CUresult storage_get(void** value, CUcontext context, void* key);

// Runs the destructors, each destructor once. The library calls this function at the end of a context (reset, last
// release, destroy), while the context's handle is still known and no lock is held.
void storage_release(CUcontext context);

}  // namespace cuabi
