// The same while the guest writes into the record that is being read.
#define FUZZ_MOVING
#include "tests/fuzz/dispatch_target.cc"
