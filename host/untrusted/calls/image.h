// The image and the JIT options of a load, copied into private memory so that the driver never reads memory that the
// guest can write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "host/session/links.h"
#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

// Returns the `count` JIT options that follow a record.
std::vector<CUjit_option> option_names(const DecodedImage& image, std::size_t count);
std::vector<std::uint64_t> option_values(const DecodedImage& image, std::size_t count);

class LoadRequest {
 public:
  // Copies the image. If ok() is false, the call must return refused().
  LoadRequest(Request& r, const api::LoadRecord& record, const DecodedImage& image);
  LoadRequest(const LoadRequest&) = delete;
  LoadRequest& operator=(const LoadRequest&) = delete;

  bool ok() const { return refused_ == CUDA_SUCCESS; }
  CUresult refused() const { return refused_; }

  const void* image() const { return image_; }
  // Returns the share of the session's budget for the driver's copies of the image. During the load the bytes copied by
  // this object count as well.
  Share take_share() { return std::move(held_); }
  // Returns the image's length, which the headers do not exceed.
  std::size_t bytes() const { return parts_[0].size(); }
  unsigned option_count() const { return options_->count(); }
  CUjit_option* options() { return options_->names(); }
  void** values() { return options_->values(); }

  // Appends the option values that the driver has written, and the logs. The guest gets them even if the load failed.
  void reply(CUresult result);

 private:
  void read_parts(const DecodedImage& image);
  bool parts_keep_within() const;
  void assemble();

  bool take_held();

  Request& r_;
  const api::LoadRecord& record_;
  Share read_, held_;  // shares of the session's budget: read_ for bytes_, held_ for the driver's copies
  CUresult refused_ = CUDA_SUCCESS;
  std::vector<std::uint64_t> bytes_;  // the image's parts, each 8-aligned; 64-bit elements give the alignment
  std::vector<std::span<const std::byte>> parts_;
  const void* image_ = nullptr;
  std::uint64_t wrapper_[3] = {};
  std::vector<const void*> prelinked_;
  std::optional<DriverJitOptions> options_;
};

// Does a whole load. `make(load, handle)` calls the driver.
template <class T, class R, class Make>
CUresult load_image(DecodedRequest<R>& t, Make make) {
  LoadRequest load(t.request, t.record, t.image());
  if (!load.ok()) return load.refused();
  T handle = nullptr;
  const CUresult result = make(load, &handle);
  load.reply(result);
  if (result != CUDA_SUCCESS) return result;
  if (!t.session().code.images.keep(t.record.id, load.take_share())) return t.request.broken();
  return t.put(handle) ? CUDA_SUCCESS : t.request.broken();
}

}  // namespace host::calls
