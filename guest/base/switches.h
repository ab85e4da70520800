// The switches of all optimisations, in one table. All optimisations are on by default; IVGPU_OFF=name,name switches
// some off. `order` is no optimisation: with it off, the tests of the order between threads must fail.
#pragma once

namespace guest {

struct Switches {
#define IVGPU_SWITCHES(X)                                                                                         \
  X(clock_skips, "a thread that calls often reads the clock for a silent host in every 64th call")                \
  X(copy_pipeline, "pageable copies use several staging chunks, filled while the GPU copies")                     \
  X(copy_streamed, "pageable copies to the device are stored past the caches")                                    \
  X(copy_threads, "large pageable copies use several threads")                                                    \
  X(known_accepted, "what the driver is known to accept or answer is not waited for, captured launches among it") \
  X(known_done, "queries and waits for what is known to be done are answered in the guest")                       \
  X(launch_chains, "the worker launches several waiting kernels as one graph")                                    \
  X(launch_graphs, "the worker launches kernels that it knows by graphs that it keeps")                           \
  X(spin, "polls before it sleeps")                                                                               \
  X(unlocked_channels, "a thread that alone uses a channel takes no lock for a record")                           \
  X(wakes, "sleeps until its worker wakes it; else it looks at set times")                                        \
  X(order, "for tests only: calls wait for what other threads issued before them")
#define X(name, help) bool name = true;
  IVGPU_SWITCHES(X)
#undef X
};

Switches read_switches();
// Reads the environment at the first call only. The log reports an unknown name. Safe from any thread.
inline const Switches& switches() {
  static const Switches s = read_switches();
  return s;
}

// Returns whether IVGPU_MANAGED=exclusive is set. The device then reports that host and GPU may not use managed memory
// at the same time (docs/design/024-managed-memory.md). Reads the environment at the first call only. Safe from any
// thread.
bool managed_is_exclusive();

// Returns the number of unanswered questions after which the guest treats the host as gone
// (guest/base/host_patience.h). The default is 7: a busy machine may answer late, but no call should hang for more than
// a second. Reads the environment at each call. Safe from any thread.
unsigned host_patience();

}  // namespace guest
