// Calls after which a kept graph would run a kernel differently from cuLaunchKernel.
#pragma once

#include <cstdint>

#include "ring/api/call.h"

namespace host {

enum class LaunchChange : std::uint8_t {
  None,
  Settings,  // later launches have other settings, so the kept graphs are made again
  Forbids,   // a graph cannot express what later launches may use
};

constexpr LaunchChange launch_change(std::uint16_t call) {
  namespace ids = api::id_of;
  switch (call) {
    case ids::cuFuncSetAttribute:
    case ids::cuFuncSetCacheConfig:
    case ids::cuFuncSetSharedMemConfig:
    case ids::cuKernelSetAttribute:
    case ids::cuKernelSetCacheConfig:
    case ids::cuCtxSetCacheConfig:
    case ids::cuCtxSetSharedMemConfig:
    case ids::cuCtxSetLimit: return LaunchChange::Settings;
    // A kernel node does not take over its stream's attributes, for example the access policy.
    case ids::cuStreamSetAttribute:
    case ids::cuStreamCopyAttributes:
    // cuda.h: texture references are undefined in the kernels of a graph.
    case ids::cuModuleGetTexRef: return LaunchChange::Forbids;
    default: return LaunchChange::None;
  }
}

}  // namespace host
