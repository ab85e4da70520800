// A worker's life: maps its slot, gives up its rights, starts the driver, closes the jail, serves, ends.
//
// The order is the invariant: everything up to the driver runs in one thread (namespaces and Landlock need that), the
// seccomp filter binds all threads before the first byte of the slot is read or written. The slot is mapped before, but
// its first contents for the guest are made in private memory and copied out in the jail. The driver of the GPU is
// passed in, so that this order is tested without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "host/worker/options.h"
#include "ring/view.h"

namespace host::worker {

struct Backend {
  // Loads and initialises the driver. False when it cannot be used at all, and the error is one sentence.
  std::function<bool(const std::string& library, std::string& error)> start;
  // Fills the page that the guest will read. It is private memory, and zero.
  std::function<void(ring::DevicePage&)> describe;
  // Runs the session until the control socket reads EOF or the guest breaks the protocol; the exit code. `windows`: a
  // bit for each window that is reserved for the session's arena.
  std::function<int(ring::SlotView, std::byte* telemetry, std::uint32_t windows)> serve;
};

// The process's exit code. Preconditions: one thread; the descriptors of `options` are the process's own.
int run(const Options& options, const Backend& backend);

}  // namespace host::worker
