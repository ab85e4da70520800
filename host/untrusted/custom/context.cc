// Contexts that a program creates, and the end of contexts. CUSTOM because a context's number is the guest's to choose and
// its end takes along what the session remembers of it.
#include <optional>

#include "host/untrusted/custom/custom.h"
#include "ring/api/records.h"

namespace host::custom {
namespace {

bool is_created(std::uint64_t number) { return number >= ring::first_created_context && number < ring::max_contexts; }

}  // namespace

CUresult cuCtxCreate_v4(Request& r) {
  const auto record = r.in.read<api::CreateContextRecord>();
  if (!r.complete() || !is_created(record.number) || record.device >= ring::max_devices || record.pad != 0)
    return r.broken();
  if ((record.flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0 || record.affinities > 1) return r.broken();
  if (record.affinities == 0 && record.sm_count != 0) return r.broken();
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  std::optional<unsigned> sm_count;
  if (record.affinities != 0) sm_count = record.sm_count;
  return r.session.create_context(record.number, static_cast<CUdevice>(record.device), record.flags, sm_count);
}

CUresult cuCtxDestroy_v2(Request& r) {
  const auto record = r.in.read<api::EndContextRecord>();
  if (!r.complete() || !is_created(record.number)) return r.broken();
  return r.session.destroy_context(static_cast<unsigned>(record.number));
}

CUresult cuDevicePrimaryCtxReset_v2(Request& r) {
  const auto record = r.in.read<api::EndContextRecord>();
  if (!r.complete() || record.number >= ring::first_created_context) return r.broken();
  return r.session.reset(static_cast<unsigned>(record.number));
}

}  // namespace host::custom
