// Calls functions of the program: host functions of streams and graphs, and destructors of user objects. One thread per
// process runs them, as in NVIDIA's driver.
#pragma once

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Runs a function of the program. Driver calls within the function are refused, as in NVIDIA's driver.
template <class F>
void run_callback(Driver& driver, F&& function) {
  driver.callbacks.run([&] {
    ThreadState& state = driver.thread();
    state.in_callback = true;
    function();
    state.in_callback = false;
  });
}

}  // namespace simgpu
