#include "host/untrusted/calls/image.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ring/abi/image.h"
#include "ring/verify/mutants.h"

namespace host::calls {
namespace {

// Returns whether an image's headers stay within its bytes. The driver gets no length and relies on the headers.
// Wrappers are refused, since they contain addresses. Text may end in the zeros after the last part.
bool keeps_within(std::span<const std::byte> part) {
  switch (cuabi::image_kind(part)) {
    case cuabi::ImageKind::Wrapper: return false;
    case cuabi::ImageKind::Text: return true;
    default: return cuabi::image_size(part) != 0;
  }
}

std::uint64_t word(const std::byte* words, std::size_t i) {
  std::uint64_t w = 0;
  std::memcpy(&w, words + i * sizeof w, sizeof w);
  return w;
}

}  // namespace

std::vector<CUjit_option> option_names(const DecodedImage& image, std::size_t count) {
  std::vector<CUjit_option> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(static_cast<CUjit_option>(word(image.options, i)));
  return names;
}

std::vector<std::uint64_t> option_values(const DecodedImage& image, std::size_t count) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(word(image.values, i));
  return values;
}

LoadRequest::LoadRequest(Request& r, const api::LoadRecord& record, const DecodedImage& image)
    : r_(r), record_(record) {
  if (record.parts != 1 && record.form != static_cast<std::uint32_t>(api::ImageForm::Prelinked)) {
    refused_ = r.broken();
  } else if (!read_.take(r.session.code.budget, image.bytes)) {  // the share is taken before the image is copied
    refused_ = CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    options_.emplace(option_names(image, record.options), option_values(image, record.options));
    read_parts(image);
    if (!parts_keep_within())
      refused_ = CUDA_ERROR_INVALID_IMAGE;
    else if (!take_held())
      refused_ = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!ok()) return;
  assemble();
}

bool LoadRequest::parts_keep_within() const { return std::all_of(parts_.begin(), parts_.end(), keeps_within); }

// The driver keeps a copy of the image, and a copy of its unpacked parts.
bool LoadRequest::take_held() {
  std::uint64_t bytes = 0, unpacked = 0;
  for (const auto part : parts_) {
    bytes += ring::padded(part.size());
    unpacked = std::max(unpacked, cuabi::largest_unpacked(part));
  }
  return unpacked <= std::numeric_limits<std::uint64_t>::max() - bytes &&
         held_.take(r_.session.code.budget, bytes + unpacked);
}

void LoadRequest::read_parts(const DecodedImage& image) {
  bytes_.assign(image.bytes / 8 + 2, 0);  // zeros follow the last part, so that PTX text without a NUL ends
  const bool staged = image.arena.there();
  if (staged)
    image.arena.copy_out(bytes_.data(), 0, image.bytes);
  else
    std::memcpy(bytes_.data(), image.in_record, image.bytes);
  if (staged && ring::wrong(ring::Mutant::image_twice)) image.arena.copy_out(bytes_.data(), 0, image.bytes);
  std::byte* at = reinterpret_cast<std::byte*>(bytes_.data());
  for (std::size_t i = 0; i < record_.parts; ++i) {
    const std::uint64_t size = word(image.sizes, i);
    parts_.emplace_back(at, size);
    std::memset(at + size, 0, ring::padded(size) - size);  // a driver reads at least four bytes
    at += ring::padded(size);
  }
}

// Builds a wrapper as programs of the CUDA runtime have it: magic and version, the container, the relocatable
// containers.
void LoadRequest::assemble() {
  const auto form = static_cast<api::ImageForm>(record_.form);
  image_ = parts_[0].data();
  if (form == api::ImageForm::Plain) return;
  const std::uint64_t version = form == api::ImageForm::Prelinked ? 2 : 1;
  for (std::size_t i = 1; i < parts_.size(); ++i) prelinked_.push_back(parts_[i].data());
  prelinked_.push_back(nullptr);
  wrapper_[0] = cuabi::wrapper_magic | version << 32;
  wrapper_[1] = reinterpret_cast<std::uint64_t>(parts_[0].data());
  wrapper_[2] = version == 2 ? reinterpret_cast<std::uint64_t>(prelinked_.data()) : 0;
  image_ = wrapper_;
}

void LoadRequest::reply(CUresult result) {
  options_->report(r_.out);
  if (result != CUDA_SUCCESS) r_.out_on_error = r_.out.used();
}

}  // namespace host::calls
