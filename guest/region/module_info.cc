#include "guest/region/module_info.h"

#include <cstring>

#include "guest/region/release.h"
#include "ring/layout/layout.h"
#include "ring/layout/release.h"

namespace guest {
namespace {

// The oldest interface of the module that programs can use. Interface 1 only lacks the questions about a VM's GPUs
// before a slot is claimed (Region::ask_about_gpus).
constexpr std::uint32_t needed_interface = 1;

constexpr const char* remedy = ": load the kernel module of this release (docs/guest-module.md)";

}  // namespace

std::string release_of(const IvgpuModuleInfo& info) {
  char release[sizeof info.release];
  copy_release(info.release, release);
  return release;
}

std::string misfit(const std::string& node, const IvgpuModuleInfo& info) {
  const std::string both =
      node + " is of the kernel module's release " + release_of(info) + ", and release " + ring::this_release;
  if (info.interface < needed_interface)
    return both + " needs interface " + std::to_string(needed_interface) + " and not " +
           std::to_string(info.interface) + remedy;
  if (info.layout != ring::layout_version)
    return both + " needs layout " + std::to_string(ring::layout_version) + " and not " + std::to_string(info.layout) +
           remedy;
  return "";
}

std::string not_ours(const std::string& node, int error) {
  return node + " is of no kernel module of ivgpu's, or of one that is older than release " + ring::this_release +
         " can use (" + std::strerror(error) + ")" + remedy;
}

// The module assigns vector v to the slots k with k % device_vectors == v. The worker raises vector slot %
// guest_vectors.
bool wakes_slot(const IvgpuModuleInfo& info, std::uint32_t slot, std::uint32_t guest_vectors) {
  if ((info.flags & IVGPU_MODULE_WAKES) == 0 || guest_vectors == 0 || info.device_vectors == 0) return false;
  const std::uint32_t raised = slot % guest_vectors;
  return raised < info.vectors && raised == slot % info.device_vectors;
}

}  // namespace guest
