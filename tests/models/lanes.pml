/* Calls from the worker to the program: ring/queue/lane.h as host/untrusted/lanes.cc and guest/session/callbacks.cc use
 * it. One lane, whose first two uses are waited for and whose others are not. The futexes have no time-out.
 *
 * Holds: the guest makes each call once, in order, with its own kind; each answer that is waited for is that call's. A
 * lost wake-up is an end state that pan calls invalid.
 */
#define THREADS 2
#define PLACES 7
#include "memory.pml"

#define WORKER 0
#define GUEST 1
#define TOKEN 0
#define KIND 1
#define SEQUENCE 2
#define DONE 3
#define RESULT 4
#define WORKER_ASLEEP 5
#define CALLBACKS_ASLEEP 6
#define CALLS 4
#define AWAITED 2

#define kind_of(token) ((token) + 40)
#define result_of(token) ((token) + 70)

bool sleeping[THREADS]; /* in the kernel */

inline sleep_on(t, p) {
  atomic {
    fence(t);
    sleeping[t] = (memory[p] == 1)
  };
  !sleeping[t];
  store(t, p, 0)
}

inline wake_if_asleep(t, p, peer) {
  fence(t);
  if
  :: load(t, p) != 0 ->
    exchange(t, p, 0, old);
    if
    :: old != 0 -> atomic { fence(t); sleeping[peer] = false }
    :: else
    fi
  :: else
  fi
}

active proctype worker() {
  byte i, old;
  for (i : 1 .. CALLS) {
#ifndef WRONG_lane_refilled
    load(WORKER, DONE) == i - 1;
#endif
#ifdef WRONG_lane_early
    release(WORKER, SEQUENCE, i);
#endif
    store(WORKER, TOKEN, i);
    store(WORKER, KIND, kind_of(i));
#ifndef WRONG_lane_early
    release(WORKER, SEQUENCE, i);
#endif
    wake_if_asleep(WORKER, CALLBACKS_ASLEEP, GUEST);
    if
    :: i <= AWAITED ->
      do
      :: load(WORKER, DONE) == i -> break
      :: else ->
        store(WORKER, WORKER_ASLEEP, 1);
        fence(WORKER);
        if
        :: load(WORKER, DONE) == i -> store(WORKER, WORKER_ASLEEP, 0)
        :: else -> sleep_on(WORKER, WORKER_ASLEEP)
        fi
      od;
      assert(load(WORKER, RESULT) == result_of(i))
    :: else
    fi
  }
}

active proctype guest() {
  byte done, sequence, token, old;
  do
  :: done == CALLS -> break
  :: else ->
    sequence = load(GUEST, SEQUENCE);
    if
    :: sequence != done ->
      assert(sequence == done + 1);
      token = load(GUEST, TOKEN);
      assert(token == sequence && load(GUEST, KIND) == kind_of(token));
      done++;
#ifdef WRONG_answer_early
      release(GUEST, DONE, done);
#endif
      store(GUEST, RESULT, result_of(token));
#ifndef WRONG_answer_early
      release(GUEST, DONE, done);
#endif
      wake_if_asleep(GUEST, WORKER_ASLEEP, WORKER)
    :: else ->
      store(GUEST, CALLBACKS_ASLEEP, 1);
      fence(GUEST);
      if
      :: load(GUEST, SEQUENCE) != done -> store(GUEST, CALLBACKS_ASLEEP, 0)
      :: else -> sleep_on(GUEST, CALLBACKS_ASLEEP)
      fi
    fi
  od
}
