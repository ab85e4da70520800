// Entry points by name: cuGetProcAddress, over the table's symbols and the CUDA versions that introduced them, and the
// function tables that libraries request by an id.
//
// A program can also look up functions that are not served: such a function refuses when called, and the log reports
// its name. If the name were missing, the runtime would report "API call is not supported in the installed CUDA
// driver", and users would upgrade their driver. No known library treats a missing name and a refusing function
// differently (docs/design/016-refusals-by-name.md).
#include <vector>

#include "guest/base/log.h"
#include "guest/calls/backend.h"
#include "guest/calls/calls.h"
#include "ring/abi/export_tables.h"
#include "ring/abi/proc_address.h"

// Declares the exported functions that refuse (guest/shim/absent.cc). Their C++ names differ from cuda.h's, because
// their types differ from the declarations in cuda.h.
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(fn, since, why) extern "C" int refusing_##fn() __asm__(#fn);
#include "ring/api/driver.def"

namespace guest::calls {
namespace {

std::vector<cuabi::ProcEntry>* build() {
  auto* entries = new std::vector<cuabi::ProcEntry>;  // never destroyed, because calls come until the process ends
  const auto add = [&](std::string_view symbol, int since, void* function) {
    const cuabi::ProcName name = cuabi::split_symbol(symbol);
    entries->push_back({name.base, name.variant, since, function});
  };
#define CALL(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define CUSTOM(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define LOCAL(fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define VARIANT(fn, since, of) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define ABSENT(fn, since, why) add(#fn, since, reinterpret_cast<void*>(&::refusing_##fn));
#include "ring/api/driver.def"
  cuabi::sort_entries(*entries);
  return entries;
}

CUresult find_entry_point(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  static const std::vector<cuabi::ProcEntry>* const entries = build();
  install_backend();
  const CUresult result = cuabi::proc_address(*entries, CUDA_VERSION, symbol, function, version, flags, status);
  if (logs(Level::Trace) && symbol != nullptr) [[unlikely]]
    log(Level::Trace, "asked for %s: %s", symbol,
        result == CUDA_SUCCESS && function != nullptr && *function != nullptr ? "there" : "not there");
  return result;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return find_entry_point(symbol, function, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return find_entry_point(symbol, function, version, flags, status);
}

CUresult cuGetExportTable(const void** table, const CUuuid* id) { return cuabi::export_table(table, id); }

}  // namespace guest::calls
