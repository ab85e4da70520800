/* A sleeper that waits for one record of many, and is woken for that alone: ring/queue/parking.h as the worker's channel
 * thread and a parked guest use it (host/untrusted/channel.cc, guest/session/channel.cc). The futex has no time-out.
 *
 * Holds: the guest sees what it waits for, whatever the worker executes meanwhile. A lost wake-up is an end state that
 * pan calls invalid.
 */
#define THREADS 2
#define PLACES 3
#include "memory.pml"

#define GUEST 0
#define WORKER 1
#define EXECUTED 0
#define ASLEEP 1
#define AWAITS 2
#define RECORDS 4

bool sleeping; /* the guest, in the kernel */

active proctype worker() {
  byte i, old;
  bool awaited;
  for (i : 1 .. RECORDS) {
    release(WORKER, EXECUTED, i);
#ifdef WRONG_awaited_early
    awaited = i >= load(WORKER, AWAITS);
#endif
#ifndef WRONG_waker_fence
    fence(WORKER);
#endif
    if
    :: load(WORKER, ASLEEP) != 0 ->
#ifndef WRONG_awaited_early
      awaited = i >= load(WORKER, AWAITS);
#endif
      if
      :: awaited ->
        exchange(WORKER, ASLEEP, 0, old);
        if
        :: old != 0 -> atomic { fence(WORKER); sleeping = false }
        :: else
        fi
      :: else
      fi
    :: else
    fi
  }
}

inline wait_for(position) {
  do
  :: load(GUEST, EXECUTED) >= position -> break
  :: else ->
    store(GUEST, AWAITS, position);
    store(GUEST, ASLEEP, 1);
#ifndef WRONG_sleeper_fence
    fence(GUEST);
#endif
    if
#ifndef WRONG_sleeper_look
    :: load(GUEST, EXECUTED) >= position
#endif
    :: else ->
      atomic {
        fence(GUEST);
        sleeping = (memory[ASLEEP] == 1)
      };
      !sleeping
    fi;
    store(GUEST, ASLEEP, 0)
  od
}

active proctype guest() {
  /* A wait for room in the ring may end before what it awaited is executed. */
  store(GUEST, AWAITS, RECORDS + 1);
  wait_for(2);
  wait_for(RECORDS)
}
