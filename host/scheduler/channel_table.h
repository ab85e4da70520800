// Reads the channels that a worker reports (ring/ops/gpu_use.h). A guest may control its worker, so each word is copied
// once.
#pragma once

#include <cstdint>
#include <vector>

#include "host/scheduler/helper_protocol.h"
#include "ring/ops/gpu_use.h"

namespace host::scheduler {

// Returns each channel of the worker's own client once; no channel if the worker has no client. Sets `version` to the
// table's version.
std::vector<SwitchedChannel> read_channels(const ring::ChannelTable& table, std::uint32_t rm_client,
                                           std::uint32_t& version);

}  // namespace host::scheduler
