// The code that a session has loaded or is linking: its images' share of the worker's memory, pending links, and where the
// parameters of its kernels lie.
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

  // The driver has ended the object: its image's share and its link go with it.
  void forget(std::uint64_t id) {
    images.drop(id);
    links.drop(id);
  }

  Budget budget;  // bytes of images, those being loaded included
  Shares images;
  Links links;
  ParameterPlaces parameter_places;
};

}  // namespace host
