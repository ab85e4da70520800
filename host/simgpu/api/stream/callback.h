// Functions of the program that the driver calls: host functions of streams and graphs, and destructors of user
// objects. One thread per process runs them, as in the real driver.
#pragma once

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Refuses driver calls while the program's function runs, as the real driver does.
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
