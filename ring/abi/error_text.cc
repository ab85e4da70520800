// The functions over the lines of ring/abi/errors.def.
#include "ring/abi/error_text.h"

namespace cuabi {

const char* error_name(CUresult code) {
  switch (code) {
#define ERROR(name, text) \
  case name:              \
    return #name;
#include "ring/abi/errors.def"
#undef ERROR
  }
  return nullptr;
}

const char* error_string(CUresult code) {
  switch (code) {
#define ERROR(name, text) \
  case name:              \
    return text;
#include "ring/abi/errors.def"
#undef ERROR
  }
  return nullptr;
}

}  // namespace cuabi
