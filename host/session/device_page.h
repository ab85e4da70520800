// Fills the page that answers a guest's questions about devices without a round trip.
#pragma once

#include "host/driver/driver.h"
#include "ring/layout/layout.h"

namespace host {

// Preconditions: the driver's cuInit has returned `init_result`. If that is CUDA_SUCCESS, a context of device 0 is
// current in this thread (the limits are read there). The page is private memory, never a slot's: it is read while
// it is filled, and a guest may write into a slot at any time.
void fill_device_page(const Driver& driver, CUresult init_result, ring::DevicePage& page);

}  // namespace host
