// Reports to the scheduler which channels the driver library has made on each GPU (ring/ops/gpu_use.h), as seen by the
// worker's ioctl(). It must begin before the driver's start.
//
// Thread-safety: any thread may call.
#pragma once

#include <cstdint>

#include "ring/ops/gpu_use.h"

namespace host::worker {

// Sets the page for the report; null: none.
void report_channels_in(ring::UsePage* page);
// Call it after an ioctl() of this process that returned 0.
void note_request(int fd, unsigned long request, const void* argument);
// The driver library's resource-manager client; 0: it has made no channel.
std::uint32_t rm_client();

}  // namespace host::worker
