// The names and the short strings of CUresult, as cuGetErrorName and cuGetErrorString give them.
#pragma once

#include <cuda.h>

namespace cuabi {

// Null for a number that cuda.h 13.0 does not name. The text stays valid for ever.
const char* error_name(CUresult code);
const char* error_string(CUresult code);

}  // namespace cuabi
