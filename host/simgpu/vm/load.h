// Loads a module from PTX texts that are not in an image, for Module::load and for tests.
#pragma once

#include <span>
#include <string>

#include "host/simgpu/engine.h"

namespace simgpu {

// Links several texts, like the objects of a program built with -rdc.
Module::Loaded load_ptx(std::span<const std::string> texts, AddressSpace& space);

}  // namespace simgpu
