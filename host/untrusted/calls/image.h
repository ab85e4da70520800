// The image and the JIT options of a load, read from a record into private memory: the driver never sees guest memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/untrusted/request.h"
#include "ring/api/records.h"

namespace host::calls {

class LoadRequest {
 public:
  // Reads the whole record. ok() false: refused() is what the call returns.
  explicit LoadRequest(Request& r);
  LoadRequest(const LoadRequest&) = delete;
  LoadRequest& operator=(const LoadRequest&) = delete;

  bool ok() const { return refused_ == CUDA_SUCCESS; }
  CUresult refused() const { return refused_; }

  std::uint64_t id() const { return record_.id; }
  const void* image() const { return image_; }
  // What the session holds for the image from now on. For the time of the load the bytes read here count as well.
  Share take_share() { return std::move(held_); }
  unsigned option_count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }

  // Appends the options' values as the driver left them and the log buffers; the guest gets them in any case.
  void reply(CUresult result);

 private:
  bool read_options();
  bool read_parts(const std::vector<std::uint64_t>& sizes);
  bool parts_keep_within(const std::vector<std::uint64_t>& sizes) const;
  void assemble();
  void lend_logs();

  bool take_held(const std::vector<std::uint64_t>& sizes);

  Request& r_;
  api::LoadRecord record_{};
  Share read_, held_;  // of the session's budget: the bytes below, and what the driver keeps
  CUresult refused_ = CUDA_SUCCESS;
  std::vector<std::uint64_t> bytes_;  // the image's parts, each 8-aligned; u64 for the alignment
  std::vector<const std::byte*> starts_;
  const void* image_ = nullptr;
  std::uint64_t wrapper_[3] = {};
  std::vector<const void*> prelinked_;
  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
  std::vector<char> info_, error_;
};

// A load's last step: the image is the session's under its id, or the record named an id that is taken.
template <class T>
CUresult loaded(Request& r, LoadRequest& load, api::Handle kind, T handle, CUresult result) {
  load.reply(result);
  if (result != CUDA_SUCCESS) return result;
  if (!r.session.images.keep(load.id(), load.take_share())) return r.broken();
  return r.session.objects.put(load.id(), kind, handle, r.place()) ? CUDA_SUCCESS : r.broken();
}

}  // namespace host::calls
