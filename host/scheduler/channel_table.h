// Reads the channels that a worker tells (ring/ops/gpu_use.h). A guest may control its worker, so each word is copied once.
#pragma once

#include <cstdint>
#include <vector>

#include "host/scheduler/helper_protocol.h"
#include "ring/ops/gpu_use.h"

namespace host::scheduler {

// Those of the worker's own client alone, and those that it tells more than once, once; none where it has no client. `version`
// becomes the table's.
std::vector<SwitchedChannel> read_channels(const ring::ChannelTable& table, std::uint32_t rm_client,
                                           std::uint32_t& version);

}  // namespace host::scheduler
