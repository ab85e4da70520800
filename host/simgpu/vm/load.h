// A module from PTX texts directly, without an image around them: Module::load does this with the texts of an image,
// and tests use it.
#pragma once

#include <span>
#include <string>

#include "host/simgpu/engine.h"

namespace simgpu {

// Several texts are linked together, as the parts of a program built with -rdc are.
Module::Loaded load_ptx(std::span<const std::string> texts, AddressSpace& space);

}  // namespace simgpu
