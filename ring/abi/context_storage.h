// Context-local storage: data that NVIDIA's runtime keeps at each context (export table CONTEXT_LOCAL_STORAGE).
//
// Semantics are the real driver's: a second put of a key is refused and keeps the first value, delete does not run the
// destructor, the end of a context does. Keys and values are the runtime's; nothing here owns or reads them. Any thread
// may call. get runs at every call of the runtime, launches included: it takes no lock and writes nothing.
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

// `context`: NULL (or all ones) is the calling thread's current one; without one the answer is INVALID_CONTEXT.
CUresult storage_put(CUcontext context, void* key, void* value, StorageDestructor destructor);
CUresult storage_delete(CUcontext context, void* key);
CUresult storage_get(void** value, CUcontext context, void* key);

// The library's duty at the end of a context (reset, last release, destroy), while its handle is still known and with
// no lock held: runs the destructors, each once.
void storage_release(CUcontext context);

}  // namespace cuabi
