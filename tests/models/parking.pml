/* Sleeping and waking: ring/queue/parking.h as the worker's channel thread, the guest and the worker's doorbell thread use
 * it (host/untrusted/channel.cc, guest/session/channel.cc, host/untrusted/serve.cc). The futex has no time-out.
 *
 * Holds: every record is taken, then the channel's thread ends when it is told to. A lost wake-up is an end state that
 * pan calls invalid. With LOOPBACK the guest wakes the worker itself; else it rings the doorbell thread.
 */
#define THREADS 3
#define PLACES 3
#include "memory.pml"

#define GUEST 0
#define WORKER 1
#define DOORBELL 2
#define TAIL 0
#define ASLEEP 1
#define STOP 2
#define RECORDS 3

byte doorbell; /* an eventfd */
bool sleeping; /* the worker, in the kernel */
byte taken;

/* The kernel orders what its caller did before. */
#define futex_wait(t, p, expected) \
  atomic {                         \
    fence(t);                      \
    sleeping = (memory[p] == expected) \
  };                               \
  !sleeping
#define futex_wake(t) atomic { fence(t); sleeping = false }

active proctype guest() {
  byte i, old;
  for (i : 1 .. RECORDS) {
    release(GUEST, TAIL, i);
#ifndef WRONG_waker_fence
    fence(GUEST);
#endif
    if
    :: load(GUEST, ASLEEP) != 0 ->
      exchange(GUEST, ASLEEP, 0, old);
      if
      :: old != 0 ->
#ifdef LOOPBACK
        futex_wake(GUEST)
#else
        doorbell++
#endif
      :: else
      fi
    :: else
    fi
  }
}

/* Another channel's guest rings the same doorbell. */
active proctype another() { doorbell++ }

active proctype worker() {
  byte head;
  do
  :: load(WORKER, STOP) != 0 -> break
  :: else ->
    if
    :: load(WORKER, TAIL) != head -> head++; taken++
    :: else ->
      store(WORKER, ASLEEP, 1);
#ifndef WRONG_sleeper_fence
      fence(WORKER);
#endif
      if
#ifndef WRONG_sleeper_look
      :: load(WORKER, TAIL) != head || load(WORKER, STOP) != 0
#endif
      :: else -> futex_wait(WORKER, ASLEEP, 1)
      fi;
      store(WORKER, ASLEEP, 0)
    fi
  od
}

#ifdef WRONG_doorbell_clear
#define wake_all() fence(DOORBELL); futex_wake(DOORBELL)
#else
#define wake_all() fence(DOORBELL); store(DOORBELL, ASLEEP, 0); futex_wake(DOORBELL)
#endif

active proctype doorbell_thread() {
  do
  :: atomic { doorbell > 0 -> doorbell = 0 }; wake_all()
  :: taken == RECORDS -> break
  od;
  store(DOORBELL, STOP, 1);
  wake_all()
}
