// An image as a module or library is loaded from it, and how its bytes reach the worker. Loading alone calls this.
//
// Invariant: a copy in the arena is not handed to anybody else before the record that names it was executed.
// Trust: an image is the program's, in this process's own memory; it is believed about its length, as the driver does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {

// The parts of an image that are sent.
struct Image {
  api::ImageForm form = api::ImageForm::Plain;
  std::vector<Part> parts;
  std::size_t bytes = 0;  // padded sum
};

// False: the image contradicts itself.
bool gather(const void* at, Image& image);

// A copy of an image where the worker finds it: pinned memory is the only memory both map. Not ok: the
// arena has no room.
class StagedImage {
 public:
  explicit StagedImage(const Image& image);
  ~StagedImage();
  StagedImage(const StagedImage&) = delete;
  StagedImage& operator=(const StagedImage&) = delete;

  bool ok() const { return at_ != nullptr; }
  std::uint64_t offset() const { return session()->arena->offset(at_); }
  // The wait for that record's reply was given up: the copy stays until the record was executed.
  void keep_until(Use use) { late_reader_ = use; }

 private:
  std::byte* at_;
  Use late_reader_;
};

}  // namespace guest
