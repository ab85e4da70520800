// An image that must outlive the call that brought it: a library's, which is loaded anew in each context.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ring/abi/image.h"

namespace simgpu {

// The bytes of a file; nothing when there is none that can be opened. Of what has no bytes, such as a folder, there are
// none.
std::optional<std::string> bytes_of_file(const char* path);

class OwnedImage {
 public:
  // `stays`: the program has promised not to touch it, so a pointer is enough.
  OwnedImage(const void* image, bool stays);
  // A file's bytes; nothing when they end before the image does.
  static std::optional<OwnedImage> from_file(const char* path, bool* found);
  OwnedImage(OwnedImage&&) = default;
  OwnedImage& operator=(OwnedImage&&) = default;

  const void* get() const;

 private:
  OwnedImage() = default;
  const void* keep(const void* image);

  const void* original_ = nullptr;
  std::vector<std::vector<char>> parts_;
  std::vector<const void*> more_;
  std::optional<cuabi::ImageWrapper> wrapper_;
};

}  // namespace simgpu
