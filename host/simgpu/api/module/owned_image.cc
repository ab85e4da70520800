// Copies an image together with the parts to which the image has pointers.
#include "host/simgpu/api/module/owned_image.h"

#include <elf.h>

#include <fstream>
#include <sstream>

namespace simgpu {

// Reads through the stream's buffer: reading a folder through stream iterators would throw.
std::optional<std::string> bytes_of_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

OwnedImage::OwnedImage(const void* image, bool stays) {
  if (stays) {
    original_ = image;
    return;
  }
  if (cuabi::image_kind(image) != cuabi::ImageKind::Wrapper) {
    keep(image);
    return;
  }
  wrapper_ = *static_cast<const cuabi::ImageWrapper*>(image);
  if (wrapper_->data != nullptr) wrapper_->data = keep(wrapper_->data);
  if (wrapper_->version == 2 && wrapper_->more != nullptr) {
    for (const void* const* part = wrapper_->more; *part != nullptr; ++part) more_.push_back(keep(*part));
    more_.push_back(nullptr);
    wrapper_->more = more_.data();
  }
}

// Copies the image. If the length in the image is invalid, copies only its first bytes, which the loader then rejects.
const void* OwnedImage::keep(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  std::size_t size = cuabi::image_size(image);
  if (size == 0)
    size = cuabi::image_kind(image) == cuabi::ImageKind::Elf ? sizeof(Elf64_Ehdr) : sizeof(cuabi::ContainerHeader);
  parts_.emplace_back(bytes, bytes + size);
  return parts_.back().data();
}

const void* OwnedImage::get() const {
  if (original_ != nullptr) return original_;
  return wrapper_ ? static_cast<const void*>(&*wrapper_) : parts_.front().data();
}

std::optional<OwnedImage> OwnedImage::from_file(const char* path, bool* found) {
  const std::optional<std::string> file = bytes_of_file(path);
  *found = file.has_value();
  if (!file) return std::nullopt;
  std::vector<char> bytes(file->begin(), file->end());
  const std::size_t size = bytes.size();
  bytes.push_back('\0');
  bool whole = true;
  switch (cuabi::image_kind(bytes.data())) {
    case cuabi::ImageKind::Wrapper: whole = false; break;  // a wrapper's pointers are meaningless in a file
    case cuabi::ImageKind::Container:
      whole = size >= sizeof(cuabi::ContainerHeader) && cuabi::image_size(bytes.data()) <= size;
      break;
    case cuabi::ImageKind::Elf: whole = size >= sizeof(Elf64_Ehdr); break;
    case cuabi::ImageKind::Text: break;
  }
  if (!whole) return std::nullopt;
  OwnedImage image;
  image.parts_.push_back(std::move(bytes));
  return image;
}

}  // namespace simgpu
