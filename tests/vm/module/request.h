// What the test in the guest asks of the test's host, which plays broker and workers (host.c). It lies in the slot of the
// asker, on the control page of channel 0; the asker rings its worker, which does it and then counts `done` up.
#pragma once

#include "ring/layout/layout_c.h"

enum RequestKind {
  REQUEST_WAKE = 1,  // after delay_us: the word at `offset` becomes `value`, and the slot's vector is rung
  REQUEST_RING,      // after delay_us: the vector of slot `value` is rung, no word changes
  REQUEST_POKE,      // the word at `offset` becomes `value`, nothing is rung
  REQUEST_REGION,    // the region's header says `value` slots, as another QEMU's might
};

struct Request {
  uint32_t kind, delay_us;
  uint64_t offset;
  uint32_t value, done;
  uint32_t rings;  // how often the worker was rung so far
};

#define REQUEST_OFFSET (IVGPU_FIRST_CHANNEL + 2048)
