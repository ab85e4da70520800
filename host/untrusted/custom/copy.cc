// Copies between host and device. CUSTOM because the host's side is a piece of the arena, the record itself or the
// reply, and never an address that the guest names: the driver would copy from any address of this process.
#include <cstring>

#include "host/untrusted/custom/custom.h"
#include "host/untrusted/unmarshal.h"
#include "ring/api/records.h"

namespace host::custom {
namespace {

enum class Inline : std::uint8_t { No, InRecord, InReply };

struct Copy {
  CUresult refused = CUDA_SUCCESS;  // broken() included
  CUdeviceptr device = 0;
  void* host = nullptr;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  bool then_wait = false;
};

// Reads and checks a copy. `where` is the place of bytes that are not in the arena.
Copy read_copy(Request& r, Inline where) {
  const auto record = r.in.read<api::CopyRecord>();
  Copy copy{.device = record.device, .bytes = record.bytes, .then_wait = record.then_wait != 0};
  if (record.arena != ring::absent) {
    copy.host = r.session.arena(record.arena, record.bytes).for_driver();
  } else if (where == Inline::InRecord) {
    copy.host = const_cast<std::byte*>(r.in.take(record.bytes));
  } else if (where == Inline::InReply) {
    copy.host = r.out.reserve(record.bytes);
    if (copy.host != nullptr) std::memset(copy.host, 0, record.bytes);
  }
  if (!r.complete() || copy.host == nullptr || record.then_wait > 1) {
    copy.refused = r.broken();
  } else if (!r.session.ranges.contains(record.device, record.bytes)) {
    copy.refused = CUDA_ERROR_INVALID_VALUE;
  } else if (api::special_stream(record.stream)) {
    copy.stream = reinterpret_cast<CUstream>(record.stream);
  } else {
    copy.stream = static_cast<CUstream>(r.session.objects.find(record.stream, api::Handle::Stream));
    if (copy.stream == nullptr) copy.refused = CUDA_ERROR_INVALID_HANDLE;
  }
  return copy;
}

// Of an asynchronous copy: a staging chunk's record is executed when the GPU is through with the chunk.
CUresult then_wait(Request& r, const Copy& c, CUresult result) {
  if (result != CUDA_SUCCESS || !c.then_wait) return result;
  return per_thread_or<api::id_of::cuStreamSynchronize>(r, r.session.driver.cuStreamSynchronize)(c.stream);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InRecord);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.to_device = c.bytes;
  return per_thread_or<api::id_of::cuMemcpyHtoD_v2>(r, r.session.driver.cuMemcpyHtoD_v2)(c.device, c.host, c.bytes);
}

CUresult cuMemcpyDtoH_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InReply);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.from_device = c.bytes;
  return per_thread_or<api::id_of::cuMemcpyDtoH_v2>(r, r.session.driver.cuMemcpyDtoH_v2)(c.host, c.device, c.bytes);
}

// From the record: the driver takes its own copy of pageable memory before it returns.
CUresult cuMemcpyHtoDAsync_v2(Request& r) {
  const Copy c = read_copy(r, Inline::InRecord);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.to_device = c.bytes;
  const auto form = per_thread_or<api::id_of::cuMemcpyHtoDAsync_v2>(r, r.session.driver.cuMemcpyHtoDAsync_v2);
  return then_wait(r, c, form(c.device, c.host, c.bytes, c.stream));
}

// To the arena only: a reply would be sent before the bytes are there.
CUresult cuMemcpyDtoHAsync_v2(Request& r) {
  const Copy c = read_copy(r, Inline::No);
  if (c.refused != CUDA_SUCCESS) return c.refused;
  r.from_device = c.bytes;
  const auto form = per_thread_or<api::id_of::cuMemcpyDtoHAsync_v2>(r, r.session.driver.cuMemcpyDtoHAsync_v2);
  return then_wait(r, c, form(c.host, c.device, c.bytes, c.stream));
}

}  // namespace host::custom
