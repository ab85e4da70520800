// The image that a module or library is loaded from, and how its bytes reach the worker. Only load.cc and
// send_image.h call this.
//
// Invariant: the arena does not reuse the room of a staged image before the record that names it was executed. Trust:
// an image is the program's own, in this process's memory. Its headers are believed about its length, as the driver
// believes them.
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

// Finds the parts. False: the image contradicts itself.
bool gather(const void* at, Image& image);

// A copy of an image in the arena, the only memory that this process and the worker share beside the ring. Not ok: the
// arena has no room.
class StagedImage {
 public:
  explicit StagedImage(const Image& image);
  ~StagedImage();
  StagedImage(const StagedImage&) = delete;
  StagedImage& operator=(const StagedImage&) = delete;

  bool ok() const { return at_ != nullptr; }
  std::uint64_t offset() const { return session()->arena->offset(at_); }
  // Call it when the wait for the record's reply was given up. The copy then stays until the record was executed.
  void keep_until(Use use) { late_reader_ = use; }

 private:
  std::byte* at_;
  Use late_reader_;
};

}  // namespace guest
