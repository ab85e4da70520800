// An image that outlives its call, as a library's, which each context loads again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ring/abi/image.h"

namespace simgpu {

// The bytes of a file; nullopt if it cannot be opened. A file without content, such as a folder, gives no bytes.
std::optional<std::string> bytes_of_file(const char* path);

class OwnedImage {
 public:
  // `stays`: the program promises not to change it, so a pointer suffices.
  OwnedImage(const void* image, bool stays);
  // Reads a file; nullopt if it ends before the image does.
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
