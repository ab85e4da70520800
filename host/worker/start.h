// Runs a worker: maps its slot, gives up privileges, starts the driver, closes the jail, serves, ends.
//
// Invariant: the order of these steps. All steps before the driver's start run in one thread, as namespaces and
// Landlock need. The seccomp filter binds all threads before the slot's first byte is read or written. The slot is
// mapped earlier, but its first contents are made in private memory and copied inside the jail. The caller passes the
// driver in, so that tests need no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "host/base/result.h"
#include "host/session/gpu_use.h"
#include "host/worker/options.h"
#include "ring/view.h"

namespace host::worker {

// Memory that the worker has mapped and reserved before the driver's start.
struct Shared {
  std::byte* telemetry = nullptr;  // ring::telemetry_bytes of memory
  std::uint32_t windows = 0;       // one bit for each window that is reserved for the session's arena
  GpuUsePages gpu_use;
};

struct Backend {
  // Loads and initialises the driver. Returns an error of one sentence if the driver cannot be used at all.
  std::function<Result<void>(const std::string& library)> start;
  // Fills the device page. The page is zeroed private memory, which is copied to the slot later.
  std::function<void(ring::DevicePage&)> describe;
  // Runs the session until the control socket reads EOF or the guest breaks the protocol. Returns the exit code.
  std::function<int(ring::SlotView, const Shared&)> serve;
  // Called before start(): sets the page for the report of the driver's channels. Null: no report.
  std::function<void(ring::UsePage*)> report_channels_in = {};
  // Called after start(). Returns the driver's resource-manager client. Null: the driver has none.
  std::function<std::uint32_t()> rm_client = {};
};

// Runs the worker. Returns the process's exit code. Preconditions: the process has one thread, and owns the descriptors
// of `options`.
[[nodiscard]] int run(const Options& options, const Backend& backend);

}  // namespace host::worker
