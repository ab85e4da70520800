// Destroys an array. The function is handwritten because the call must ignore a level of a mipmapped array. All other
// array calls are CALL lines.
#include "guest/calls/calls.h"
#include "guest/calls/module/load.h"
#include "guest/marshal/custom.h"

namespace guest::calls {
CUresult cuArrayDestroy(CUarray array) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuArrayDestroy>(context, array); r != CUDA_SUCCESS) return r;
  Object* object = session()->objects.find(array, api::Handle::Array);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // The level's owner destroys the level; the driver ignores the call, too.
  if (object->owner != 0) return CUDA_SUCCESS;
  return unload(api::id_of::cuArrayDestroy, *context, *object);
}

}  // namespace guest::calls
