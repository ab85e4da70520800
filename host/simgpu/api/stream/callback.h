// The program's functions that the driver calls: host functions of streams and of graphs, and the destructors of user
// objects. A process runs them in one thread, as the real driver does.
#pragma once

#include "host/simgpu/api/driver.h"

namespace simgpu {

// While the program's function runs, its calls into the driver are refused, as the real one does.
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
