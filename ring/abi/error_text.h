// The names and the short strings of CUresult, as cuGetErrorName and cuGetErrorString return them. Any thread may call
// these functions.
//
// ```cpp
// const char* readable(CUresult code) {
//   const char* const name = cuabi::error_name(code);
//   return name != nullptr ? name : "an error that cuda.h does not name";
// }
// ```
#pragma once

#include <cuda.h>

namespace cuabi {

// Returns null for a number that cuda.h 13.0 does not name. The text is never freed.
const char* error_name(CUresult code);
const char* error_string(CUresult code);

}  // namespace cuabi
