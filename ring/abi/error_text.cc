// ring/abi/errors.def, expanded twice.
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
