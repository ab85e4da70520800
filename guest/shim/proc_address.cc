// cuGetProcAddress: the table's symbols, with the versions in which they came.
//
// What is not served is handed out all the same, and refuses by name when it is called. The runtime would make of a
// name that it does not get "API call is not supported in the installed CUDA driver", and users upgrade drivers then.
// No library was found that takes another way where a name is missing, and none where it is there and refuses
// (docs/design/016-refusals-by-name.md).
#include "ring/abi/proc_address.h"

#include <vector>

#include "guest/log.h"
#include "guest/shim/shim.h"

namespace guest {
namespace {

std::vector<cuabi::ProcEntry>* build() {
  auto* entries = new std::vector<cuabi::ProcEntry>;  // leaked: pointers into it are asked for until the process's end
  const auto add = [&](std::string_view symbol, int since, void* function) {
    const cuabi::ProcName name = cuabi::split_symbol(symbol);
    entries->push_back({name.base, name.variant, since, function});
  };
#define CALL(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define CUSTOM(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define LOCAL(fn, since) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define VARIANT(fn, since, of) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define ABSENT(fn, since, why) add(#fn, since, refusing_entry(#fn));
#include "ring/api/driver.def"
  cuabi::sort_entries(*entries);
  return entries;
}

}  // namespace

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

}  // namespace guest
