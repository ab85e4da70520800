// Loads code from a file of the program. The worker cannot read the guest's files. The guest therefore reads the file
// and loads its contents like any image.
#include <vector>

#include "guest/calls/calls.h"
#include "guest/calls/module/file_bytes.h"
#include "guest/process/process.h"

namespace guest::calls {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  const std::vector<char> image = file_bytes(path, error);
  return image.empty() ? error : calls::cuModuleLoadData(module, image.data());
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_names, void** jit_values,
                               unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  const std::vector<char> image = file_bytes(path, error);
  if (image.empty()) return error;
  return calls::cuLibraryLoadData(library, image.data(), jit_names, jit_values, jit_count, options, values, count);
}

}  // namespace guest::calls
