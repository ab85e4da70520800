// cuGetProcAddress: the table's served symbols, with the versions in which they came.
#include "ring/abi/proc_address.h"

#include <cstdlib>
#include <vector>

#include "guest/log.h"
#include "guest/shim/shim.h"

namespace guest {
namespace {

// `ivgpu coverage` wants to see who calls what is not served: then such a function is handed out, and refuses.
bool shows_refusals() {
  const char* set = std::getenv("IVGPU_COVERAGE");
  return set != nullptr && *set == '1';
}

std::vector<cuabi::ProcEntry>* build() {
  const bool refusals = shows_refusals();
  auto* entries = new std::vector<cuabi::ProcEntry>;  // leaked: pointers into it are asked for until the process's end
  const auto add = [&](std::string_view symbol, int since, void* function) {
    const cuabi::ProcName name = cuabi::split_symbol(symbol);
    entries->push_back({name.base, name.variant, since, function});
  };
#define CALL(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define CUSTOM(id, fn, since, ...) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define LOCAL(fn, since) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define VARIANT(fn, since, of) add(#fn, since, reinterpret_cast<void*>(&::fn));
#define ABSENT(fn, since, why) add(#fn, since, refusals ? refusing_entry(#fn) : nullptr);
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
