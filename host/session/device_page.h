// Fills the page that answers a guest's questions about devices without a round trip.
#pragma once

#include "host/driver/driver.h"
#include "ring/layout/layout.h"

namespace host {

// Preconditions: the driver's cuInit has returned `init_result`. If `init_result` is CUDA_SUCCESS, a context of device
// 0 is current in this thread, because the limits are read in this context. The page must be private memory, never a
// slot's: this function reads the page while it fills the page, and a guest may write into a slot at any time.
void fill_device_page(const Driver& driver, CUresult init_result, ring::DevicePage& page);

}  // namespace host
