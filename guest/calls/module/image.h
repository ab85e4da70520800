// The image of a module or library, and how its bytes reach the worker. Only load.cc and send_image.h call this.
//
// Invariant: the arena does not reuse the space of a staged image before the record that names it was executed. Trust:
// an image is the program's own, in this process's memory. Like the driver, the guest believes the lengths in its
// headers.
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
  std::size_t bytes = 0;  // padded sum
};

// Finds the sections. False: the image contradicts itself.
bool gather(const void* at, Image& image);

// A copy of an image in the arena, which this process and the worker share. Not ok: the arena has no space.
class StagedImage {
 public:
  explicit StagedImage(const Image& image);
  ~StagedImage();
  StagedImage(const StagedImage&) = delete;
  StagedImage& operator=(const StagedImage&) = delete;

  bool ok() const { return at_ != nullptr; }
  std::uint64_t offset() const { return session()->memory.arena->offset(at_); }
  // Called when the guest gave up waiting for the record's reply. The copy then stays until the record was executed.
  void keep_until(Use use) { late_reader_ = use; }

 private:
  std::byte* at_;
  Use late_reader_;
};

}  // namespace guest
