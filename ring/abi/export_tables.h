// The export tables that NVIDIA's runtime and libraries ask for (cuGetExportTable). Established from outside, by
// watching their requests and calls; ids, sizes and slots are listed in export_tables.cc.
#pragma once

#include <cuda.h>

namespace cuabi {

// As cuGetExportTable: an unknown id is INVALID_VALUE with NULL. Serves before cuInit: the runtime asks that early.
CUresult export_table(const void** table, const CUuuid* id);

}  // namespace cuabi
