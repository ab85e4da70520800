// cuGetProcAddress: the table's served symbols, with the versions in which they came.
#include "ring/abi/proc_address.h"

#include <vector>

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
#define ABSENT(fn, since, why) add(#fn, since, nullptr);
#include "ring/api/driver.def"
#undef CALL
#undef CUSTOM
#undef LOCAL
#undef VARIANT
#undef ABSENT
  cuabi::sort_entries(*entries);
  return entries;
}

}  // namespace

CUresult find_entry_point(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  static const std::vector<cuabi::ProcEntry>* const entries = build();
  install_backend();
  return cuabi::proc_address(*entries, CUDA_VERSION, symbol, function, version, flags, status);
}

}  // namespace guest
