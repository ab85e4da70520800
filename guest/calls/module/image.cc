#include "guest/calls/module/image.h"

#include <cstring>

#include "ring/abi/image.h"

namespace guest {
namespace {

bool add_part(Image& image, const void* at) {
  std::size_t size = at != nullptr ? cuabi::image_size(at) : 0;
  if (size == 0 && at != nullptr && *static_cast<const char*>(at) == '\0')
    size = 1;  // an empty text, which the driver refuses or accepts
  if (size == 0) return false;
  image.parts.push_back({at, size});
  image.bytes += ring::padded(size);
  return true;
}

}  // namespace

bool gather(const void* at, Image& image) {
  if (cuabi::image_kind(at) != cuabi::ImageKind::Wrapper) return add_part(image, at);
  cuabi::ImageWrapper wrapper;
  std::memcpy(&wrapper, at, sizeof wrapper);
  image.form = wrapper.version == 2 ? api::ImageForm::Prelinked : api::ImageForm::Wrapper;
  if (!add_part(image, wrapper.data)) return false;
  if (wrapper.version != 2 || wrapper.more == nullptr) return true;
  for (const void* const* more = wrapper.more; *more != nullptr; ++more)
    if (!add_part(image, *more)) return false;
  return true;
}

StagedImage::StagedImage(const Image& image) {
  at_ = session()->memory.arena->allocate(image.bytes);
  std::byte* to = at_;
  for (const Part& part : image.parts) {
    if (at_ == nullptr) return;
    std::memcpy(to, part.at, part.bytes);
    to += ring::padded(part.bytes);
  }
}

StagedImage::~StagedImage() {
  if (at_ == nullptr) return;
  if (late_reader_.position == 0)
    session()->memory.arena->free(at_);
  else
    session()->memory.arena->free_after(at_, late_reader_);
}

}  // namespace guest
