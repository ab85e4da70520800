// Stands for guest/shim/proc_address.cc, the exported face, which these tests leave out.
#include "guest/shim/shim.h"

CUresult guest::find_entry_point(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
