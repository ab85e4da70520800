// The export tables that NVIDIA's runtime and libraries request (cuGetExportTable).
//
// Source: the requests and calls of these libraries, observed from outside; export_tables.cc lists ids, sizes and
// slots. A table belongs to the library and exists as long as the process. Any thread may call these functions.
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

// Works like cuGetExportTable: for an unknown id, returns INVALID_VALUE and a NULL table. The runtime calls this
// function before cuInit, too.
CUresult export_table(const void** table, const CUuuid* id);

}  // namespace cuabi
