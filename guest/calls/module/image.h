// The image of a module or library, and how the image's bytes reach the worker. Only load.cc and send_image.h use this
// file.
//
// Invariant: the arena reuses the space of a staged image only after the worker has executed the record that names the
// image. Trust: an image is the program's own, in this process's memory. Like the driver, the guest trusts the lengths
// in the image's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {

// The sections of an image to send.
struct Image {
  api::ImageForm form = api::ImageForm::Plain;
  std::vector<Part> parts;
  std::size_t bytes = 0;  // the sum of the padded sizes
};

// Finds the sections of an image. Returns false if the image contradicts itself.
bool gather(const void* at, Image& image);

// A copy of an image in the arena, which this process and the worker share. ok() is false if the arena has no space.
class StagedImage {
 public:
  explicit StagedImage(const Image& image);
  ~StagedImage();
  StagedImage(const StagedImage&) = delete;
  StagedImage& operator=(const StagedImage&) = delete;

  bool ok() const { return at_ != nullptr; }
  std::uint64_t offset() const { return session()->memory.arena->offset(at_); }
  // Called when the guest gave up waiting for the record's reply. The copy then stays until the worker has executed the
  // record.
  void keep_until(Use use) { late_reader_ = use; }

 private:
  std::byte* at_;
  Use late_reader_;
};

}  // namespace guest
