// Every optimisation's off switch, in one table: IVGPU_OFF=name,name. On by default. `order` is no optimisation: it is
// for the tests of the order of host threads, which have to be able to fail.
#pragma once

namespace guest {

struct Switches {
#define IVGPU_SWITCHES(X)                                                                     \
  X(copy_pipeline, "pageable copies use several staging chunks, filled while the GPU copies") \
  X(copy_streamed, "pageable copies to the device are stored past the caches")                \
  X(copy_threads, "large pageable copies use several threads")                                \
  X(known_done, "queries and waits for what is known to be done are answered in the guest")   \
  X(spin, "polls before it sleeps")                                                           \
  X(order, "for tests only: calls wait for what other threads issued before them")
#define X(name, help) bool name = true;
  IVGPU_SWITCHES(X)
#undef X
};

// Read once, at the first call. The log reports an unknown name.
const Switches& switches();

}  // namespace guest
