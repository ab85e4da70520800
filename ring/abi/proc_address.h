// cuGetProcAddress: finds the symbol for a base name, a version and a stream variant.
//
// The library provides the table (every entry point of cuda.h, served or not); the rules are here. The table's owner
// keeps it alive and unchanged; any thread may then search it. Versions count as in CUDA: 12040 is 12.4.
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

// Plain, or the form whose default stream is the calling thread's (_ptsz, _ptds).
enum class Variant : std::uint8_t { Legacy, PerThread };

struct ProcEntry {
  std::string_view name;  // without suffixes: "cuMemcpyHtoD"
  Variant variant;
  int since;       // the CUDA version that introduced this form
  void* function;  // null: this library does not serve it
};

// Name and variant of an exported symbol: "cuMemcpyHtoD_v2_ptds" is cuMemcpyHtoD, PerThread.
struct ProcName {
  std::string_view base;
  Variant variant;
};
ProcName split_symbol(std::string_view symbol);

// Sorts in place, once, for proc_address.
void sort_entries(std::span<ProcEntry> entries);

// Like cuGetProcAddress_v2; with a null `status`, like cuGetProcAddress. `entries`: sorted by sort_entries. A name that
// is unknown or not served gives CUDA_SUCCESS and a NULL function: programs probe for features by presence. An older
// form of the name is no substitute, since its signature may differ.
CUresult proc_address(std::span<const ProcEntry> entries, int driver_version, const char* symbol, void** function,
                      int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status);

}  // namespace cuabi
