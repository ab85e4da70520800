// Entry points by name: cuGetProcAddress over the table's symbols, with the versions in which they came, and the tables
// of functions that libraries get by an id.
//
// What is not served is handed out all the same, and refuses by name when it is called. The runtime would make of a
// name that it does not get "API call is not supported in the installed CUDA driver", and users upgrade drivers then.
// No library was found that takes another way where a name is missing, and none where it is there and refuses
// (docs/design/016-refusals-by-name.md).
#include <vector>

#include "guest/calls/backend.h"
#include "guest/calls/calls.h"
#include "guest/log.h"
#include "ring/abi/export_tables.h"
#include "ring/abi/proc_address.h"

// The exported functions that refuse (guest/shim/absent.cc), under names that do not meet the declarations of cuda.h.
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(fn, since, why) extern "C" int refusing_##fn() __asm__(#fn);
#include "ring/api/driver.def"

namespace guest::calls {
namespace {

std::vector<cuabi::ProcEntry>* build() {
  auto* entries = new std::vector<cuabi::ProcEntry>;  // leaked: pointers into it are asked for until the process's end
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
