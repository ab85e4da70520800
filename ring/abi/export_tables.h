// The export tables that NVIDIA's runtime and libraries ask for (cuGetExportTable).
//
// Source: their requests and calls, watched from outside; export_tables.cc lists ids, sizes and slots. A table belongs
// to the library and lives as long as the process. Any thread may ask.
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

// Like cuGetExportTable: an unknown id gives INVALID_VALUE and NULL. The runtime calls it before cuInit, too.
CUresult export_table(const void** table, const CUuuid* id);

}  // namespace cuabi
