// cuGetProcAddress: finds the symbol for a base name, a version and a stream variant.
//
// The library provides the table (every entry point of cuda.h, served or not); this file has the rules. The table's
// owner keeps the table alive and unchanged; any thread may then search it. Versions are numbers as in CUDA: 12040 is
// 12.4.
//
// ```cpp
// void* find(std::span<const cuabi::ProcEntry> sorted, const char* name) {
//   void* function = nullptr;
//   cuabi::proc_address(sorted, 13000, name, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
//   return function;  // null: unknown or not served
// }
// ```
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace cuabi {

// The variant of a symbol. PerThread: the default stream is the calling thread's own (_ptsz, _ptds).
enum class Variant : std::uint8_t { Legacy, PerThread };

struct ProcEntry {
  std::string_view name;  // the name without suffixes, for example "cuMemcpyHtoD"
  Variant variant;
  int since;       // the CUDA version that introduced this entry point
  void* function;  // null: this library does not serve the entry point
};

// Name and variant of an exported symbol. For example, "cuMemcpyHtoD_v2_ptds" has the name cuMemcpyHtoD and the variant
// PerThread.
struct ProcName {
  std::string_view base;
  Variant variant;
};
ProcName split_symbol(std::string_view symbol);

// Sorts the entries in place for proc_address. Called once.
void sort_entries(std::span<ProcEntry> entries);

// Works like cuGetProcAddress_v2 or, with a null `status`, like cuGetProcAddress. `entries` must be sorted by
// sort_entries. For a name that is unknown or not served, returns CUDA_SUCCESS and a NULL function, since programs
// detect features by a function's presence. An older version of the function is no substitute, because its signature
// may differ.
CUresult proc_address(std::span<const ProcEntry> entries, int driver_version, const char* symbol, void** function,
                      int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status);

}  // namespace cuabi
