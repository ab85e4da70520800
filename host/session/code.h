// A session's code, loaded or being linked: the share of the worker's memory that its images use, pending links, and
// the places of its kernels' parameters.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

#include "host/session/links.h"
#include "host/session/memory/budget.h"
#include "host/session/parameter_places.h"

namespace host {

struct LoadedCode {
  explicit LoadedCode(std::uint64_t image_bytes) : budget(image_bytes) {}

  // Called when the driver has ended the object. Drops the share of its image, and its link.
  void forget(std::uint64_t id) {
    images.drop(id);
    links.drop(id);
  }

  Budget budget;  // bytes of images, including images that are being loaded
  Shares images;
  Links links;
  ParameterPlaces parameter_places;
};

}  // namespace host
