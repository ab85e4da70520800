// Which submissions are taken to last as long as each other on the GPU (host/session/batch.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "ring/api/call.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"

namespace host {

// A launch is of a kind with launches of the same kernel in a grid of the same size; any other call with itself. The record
// may be a hostile guest's: any number will do.
inline std::uint32_t kind_of_work(std::uint16_t call, std::span<const std::byte> payload) {
  const bool is_launch = call == api::id_of::cuLaunchKernel || call == api::id_of::cuLaunchKernelEx;
  api::LaunchRecord launch;
  if (!is_launch || payload.size() < sizeof launch) return call;
  std::memcpy(&launch, payload.data(), sizeof launch);
  std::uint64_t mixed = launch.function;
  for (const std::uint32_t extent : launch.grid) mixed = (mixed ^ extent) * 0x9e3779b97f4a7c15;
  return static_cast<std::uint32_t>(mixed >> 32);
}

}  // namespace host
