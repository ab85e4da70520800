// The rules of cuGetProcAddress over a sorted table.
#include "ring/abi/proc_address.h"

#include <algorithm>

namespace cuabi {
namespace {

std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

bool by_name(const ProcEntry& a, const ProcEntry& b) { return a.name < b.name; }

// Returns the newest entry of a variant that is not newer than the requested version.
const ProcEntry* newest(std::span<const ProcEntry> named, Variant variant, int version) {
  const ProcEntry* best = nullptr;
  for (const ProcEntry& entry : named)
    if (entry.variant == variant && entry.since <= version && (best == nullptr || entry.since > best->since))
      best = &entry;
  return best;
}

CUresult answer(void** function, void* found, CUdriverProcAddressQueryResult* status,
                CUdriverProcAddressQueryResult given) {
  *function = found;
  if (status != nullptr) *status = given;
  return CUDA_SUCCESS;
}

}  // namespace

ProcName split_symbol(std::string_view symbol) {
  std::string_view base = without(without(symbol, "_ptsz"), "_ptds");
  const Variant variant = base.size() == symbol.size() ? Variant::Legacy : Variant::PerThread;
  for (const std::string_view version : {"_v2", "_v3", "_v4"}) base = without(base, version);
  return {base, variant};
}

void sort_entries(std::span<ProcEntry> entries) { std::sort(entries.begin(), entries.end(), by_name); }

CUresult proc_address(std::span<const ProcEntry> entries, int driver_version, const char* symbol, void** function,
                      int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
      flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  if (version > driver_version) return CUDA_ERROR_INVALID_VALUE;

  const auto [first, last] =
      std::equal_range(entries.begin(), entries.end(), ProcEntry{symbol, Variant::Legacy, 0, nullptr}, by_name);
  const std::span<const ProcEntry> named(first, last);
  // If the program requests per-thread streams, a call that has a per-thread variant is found only as that variant.
  const bool by_thread =
      flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
      std::any_of(named.begin(), named.end(), [](const ProcEntry& e) { return e.variant == Variant::PerThread; });
  const ProcEntry* found = newest(named, by_thread ? Variant::PerThread : Variant::Legacy, version);

  if (named.empty()) return answer(function, nullptr, status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  if (found == nullptr) return answer(function, nullptr, status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  if (found->function == nullptr) return answer(function, nullptr, status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  return answer(function, found->function, status, CU_GET_PROC_ADDRESS_SUCCESS);
}

}  // namespace cuabi
