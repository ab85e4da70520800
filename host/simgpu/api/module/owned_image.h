// An image that outlives the call that passed it. A library needs such an image, because each context loads it again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ring/abi/image.h"

namespace simgpu {

// Returns the bytes of a file; nullopt if the file cannot be opened. A folder or an empty file yields no bytes.
std::optional<std::string> bytes_of_file(const char* path);

class OwnedImage {
 public:
  // `stays`: the program promises not to change the image, so storing a pointer suffices.
  OwnedImage(const void* image, bool stays);
  // Reads a file; returns nullopt if the file ends before the image does.
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
