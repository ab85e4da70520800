// The guest's kernel module's report about itself, for the library and for ivgpu-check.
#pragma once

#include <cstdint>
#include <string>

#include "ring/layout/module_c.h"

namespace guest {

// The module's release as printable text.
std::string release_of(const IvgpuModuleInfo& info);

// Why this release cannot use the module of a node, in one sentence with the remedy; "": it can. not_ours() is for a
// node whose module reports nothing: `error` is its errno.
std::string misfit(const std::string& node, const IvgpuModuleInfo& info);
std::string not_ours(const std::string& node, int error);

// Whether the interrupt of this slot's worker, vector slot % guest_vectors, wakes the slot's sleepers. 0 guest vectors:
// the worker raises none.
bool wakes_slot(const IvgpuModuleInfo& info, std::uint32_t slot, std::uint32_t guest_vectors);

}  // namespace guest
