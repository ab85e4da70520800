// A request of the guest's test to the test's host, which stands in for the broker and the workers (host.c). The
// request is on the control page of channel 0 in the slot. The test rings the worker, which executes the request and
// increments `done`.
#pragma once

#include "ring/layout/layout_c.h"

enum RequestKind {
  REQUEST_WAKE = 1,  // after delay_us: sets the word at `offset` to `value`, and raises the slot's vector
  REQUEST_RING,      // after delay_us: raises the vector of slot `value` without changing a word
  REQUEST_POKE,      // sets the word at `offset` to `value` without raising a vector
  REQUEST_REGION,    // the region's header claims `value` slots
};

struct Request {
  uint32_t kind, delay_us;
  uint64_t offset;
  uint32_t value, done;
  uint32_t rings;  // the number of doorbells of the worker
};

#define REQUEST_OFFSET (IVGPU_FIRST_CHANNEL + 2048)
