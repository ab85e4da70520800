// What the guest's kernel module reports about itself, for the library and for ivgpu-check.
#pragma once

#include <cstdint>
#include <string>

#include "ring/layout/module_c.h"

namespace guest {

// Returns the module's release as printable text.
std::string release_of(const IvgpuModuleInfo& info);

// misfit() returns why this release cannot use the module of a node, in one sentence with the remedy; "" if it can.
// not_ours() is for a node whose module reports nothing: `error` is the errno.
std::string misfit(const std::string& node, const IvgpuModuleInfo& info);
std::string not_ours(const std::string& node, int error);

// Returns whether the interrupt of this slot's worker, vector slot % guest_vectors, wakes the slot's sleeping threads.
// If guest_vectors is 0, the worker raises no interrupt.
bool wakes_slot(const IvgpuModuleInfo& info, std::uint32_t slot, std::uint32_t guest_vectors);

}  // namespace guest
