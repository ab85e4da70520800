// Functions that are exported because programs call them or look them up, although a guest's GPU has no answer.
#include "guest/nvml/library.h"

namespace guest::nvml {
namespace {

nvmlReturn_t refuse_of_gpu(nvmlDevice_t device, nvmlReturn_t result) {
  return library().of_gpu(device, About::State, true, [&](const Gpu&) { return result; });
}

// nvidia-smi requests a table of unnamed functions at its start, and exits if there is none. NVIDIA does not document
// these functions, so each function of our table refuses. nvidia-smi then uses the public functions
// (docs/design/044-nvml.md).
nvmlReturn_t refuse() { return NVML_ERROR_FUNCTION_NOT_FOUND; }

struct Table {
  static constexpr std::size_t entries = 255;  // nvidia-smi uses 90 entries

  std::size_t bytes = sizeof(Table);
  nvmlReturn_t (*entry[entries])();
  constexpr Table() : entry() {
    for (auto& function : entry) function = refuse;
  }
};
constinit const Table table;

}  // namespace

#define DEVICE(function) \
  NVML_CALL function(nvmlDevice_t device) { return refuse_of_gpu(device, NVML_ERROR_NOT_SUPPORTED); }
#define SETTER(function) \
  NVML_CALL function(nvmlDevice_t device) { return refuse_of_gpu(device, NVML_ERROR_NO_PERMISSION); }
#define OTHER(function) \
  NVML_CALL function() { return library().started() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED; }
#include "guest/nvml/not_supported.def"
#undef DEVICE
#undef SETTER
#undef OTHER

// Returns the same table for every id.
NVML_CALL nvmlInternalGetExportTable(const void** to, const void* id) {
  if (to == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *to = &table;
  return NVML_SUCCESS;
}

}  // namespace guest::nvml
