// Context-local storage: data that NVIDIA's runtime keeps for each context (export table CONTEXT_LOCAL_STORAGE).
//
// Semantics are the real driver's: a second put of a key is refused and keeps the first value. The end of a context
// runs the destructor, delete does not. Keys and values are the runtime's; nothing here owns or reads them. Any thread
// may call. Each call of the runtime, launches included, calls get: it takes no lock and writes nothing.
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

// `context`: NULL (or all ones) means the calling thread's current one; if there is none, INVALID_CONTEXT.
CUresult storage_put(CUcontext context, void* key, void* value, StorageDestructor destructor);
CUresult storage_delete(CUcontext context, void* key);
CUresult storage_get(void** value, CUcontext context, void* key);

// Runs the destructors, each once. The library calls it at the end of a context (reset, last release, destroy), while
// the context's handle is still known and no lock is held.
void storage_release(CUcontext context);

}  // namespace cuabi
