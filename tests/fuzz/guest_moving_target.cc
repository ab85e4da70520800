// The same while the worker writes into what is being read: region, slot, device page and replies.
#define FUZZ_MOVING
#include "tests/fuzz/guest_target.cc"
