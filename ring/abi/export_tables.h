// The export tables that NVIDIA's runtime and libraries ask for (cuGetExportTable).
//
// Source: their requests and calls, watched from outside; ids, sizes and slots are listed in export_tables.cc. A table
// belongs to the library and lives as long as the process. Any thread may ask.
//
// ```cpp
// bool has_table(const CUuuid& id) {
//   const void* table = nullptr;
//   return cuabi::export_table(&table, &id) == CUDA_SUCCESS;
// }
// ```
#pragma once

#include <cuda.h>

namespace cuabi {

// As cuGetExportTable: an unknown id is INVALID_VALUE with NULL. Serves before cuInit: the runtime asks that early.
CUresult export_table(const void** table, const CUuuid* id);

}  // namespace cuabi
