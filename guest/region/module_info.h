// What the guest's kernel module says of itself, and what follows from it: for the library and for ivgpu-check.
#pragma once

#include <cstdint>
#include <string>

#include "ring/layout/module_c.h"

namespace guest {

// Its release, made printable.
std::string release_of(const IvgpuModuleInfo& info);

// Why this release cannot use the module behind a node, in one sentence with the remedy; "": it can. The other is for a
// node whose module does not say anything: `error` is its errno.
std::string misfit(const std::string& node, const IvgpuModuleInfo& info);
std::string not_ours(const std::string& node, int error);

// Whether the interrupt that the worker of this slot raises, number slot % guest_vectors, wakes the slot's sleepers. 0
// vectors: it raises none.
bool wakes_slot(const IvgpuModuleInfo& info, std::uint32_t slot, std::uint32_t guest_vectors);

}  // namespace guest
