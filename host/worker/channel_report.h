// Reports to the scheduler which channels the driver library has made on each GPU (ring/ops/gpu_use.h). The worker's
// ioctl() sees the driver library's requests. The report must begin before the driver's start.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

#include "ring/ops/gpu_use.h"

namespace host::worker {

// Sets the page for the report. Null: there is no report.
void report_channels_in(ring::UsePage* page);
// Must be called after an ioctl() of this process that returned 0.
void note_request(int fd, unsigned long request, const void* argument);
// Returns the driver library's resource-manager client; 0: the library has made no channel.
std::uint32_t rm_client();

}  // namespace host::worker
