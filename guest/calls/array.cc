// Arrays: their parts and their ends. (Their creation and what is asked of them are CALL lines.)
//
// Trust: the arguments are the program's; lookup.h says how a lookup's reply is checked.
#include "guest/calls/calls.h"
#include "guest/calls/load.h"
#include "guest/calls/lookup.h"
#include "guest/marshal/custom.h"
#include "ring/api/texture_records.h"

namespace guest::calls {
namespace {

template <int call, api::Handle kind, class Owner>
CUresult find_part(CUarray* out, Owner handle, unsigned which) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // in any state, as the driver says
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context, handle); r != CUDA_SUCCESS) return r;
  const Object* owner = session()->objects.find(handle, kind);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Object* found = nullptr;
  const CUresult result = look_up_part(call, api::Handle::Array, *context, *owner, which, found);
  if (result == CUDA_SUCCESS) *out = handle_of_object<CUarray>(*found);
  return result;
}

template <int call, api::Handle kind, class T>
CUresult destroy(T handle) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context, handle); r != CUDA_SUCCESS) return r;
  Object* object = session()->objects.find(handle, kind);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (object->owner != 0) return CUDA_SUCCESS;  // a level goes with its owner, and the driver says no more of it
  return unload(call, *context, *object);
}

}  // namespace

CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray array, unsigned which) {
  return find_part<api::id_of::cuMipmappedArrayGetLevel, api::Handle::MipmappedArray>(level, array, which);
}

CUresult cuArrayGetPlane(CUarray* plane, CUarray array, unsigned which) {
  return find_part<api::id_of::cuArrayGetPlane, api::Handle::Array>(plane, array, which);
}

CUresult cuArrayDestroy(CUarray array) { return destroy<api::id_of::cuArrayDestroy, api::Handle::Array>(array); }

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy<api::id_of::cuMipmappedArrayDestroy, api::Handle::MipmappedArray>(array);
}

}  // namespace guest::calls
