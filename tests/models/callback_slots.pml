/* Calls from the worker to the program: ring/queue/callback_slot.h as host/untrusted/callbacks/callback_slot_pool.h, host/untrusted/callbacks/callback_slots.cc and
 * guest/session/callbacks.cc use it. Two threads of the worker share the lanes. A thread awaits a call's answer and gives
 * the lane back, or it leaves the lane and no thread waits for the answer. The futexes have no time-out.
 *
 * One thread awaits FUNCTION, then leaves ITS_END, which ends that function's token. The other leaves OBJECT, the
 * destructor of a user object, then awaits CALLBACK.
 *
 * Holds: the guest makes each call once, with its own kind, and makes ITS_END after FUNCTION; an awaited answer is that
 * call's; the worker ends no session of an honest guest. A lost wake-up is an end state that pan calls invalid. So is a
 * thread that never gets a lane.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#define THREADS 3
#define PLACES (1 + 6 * SLOTS)
#include "memory.pml"

#define WORKER 0 /* and 1 */
#define GUEST 2
#define CALLBACKS_ASLEEP 0
#define TOKEN(callback_slot) (1 + 6 * (callback_slot))
#define KIND(callback_slot) (2 + 6 * (callback_slot))
#define SEQUENCE(callback_slot) (3 + 6 * (callback_slot))
#define DONE(callback_slot) (4 + 6 * (callback_slot))
#define RESULT(callback_slot) (5 + 6 * (callback_slot))
#define WORKER_ASLEEP(callback_slot) (6 + 6 * (callback_slot))

#define FUNCTION 1
#define ITS_END 2
#define OBJECT 3
#define CALLBACK 4
#define CALLS (SLOTS == 1 -> 4 : 3) /* two lanes go without CALLBACK, which makes ten times the states */

#define kind_of(token) ((token) + 40)
#define result_of(token) ((token) + 70)

/* The worker's own words, which its lock guards: no store buffers between its threads. */
mtype = { Free, Busy, Left };
mtype state[SLOTS] = Free;
byte used[SLOTS];          /* the private count of each lane's uses */
bool waits_for_lane[2];    /* each thread, on the condition variable */
byte user[SLOTS];          /* the thread that may sleep on the lane */
bool made[5];              /* by the guest: each call */
bool sleeping[THREADS];    /* in the kernel */

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

inline await(t, k) {
  do
  :: load(t, DONE(k)) == used[k] -> break
  :: else ->
    store(t, WORKER_ASLEEP(k), 1);
    fence(t);
    if
    :: load(t, DONE(k)) == used[k] -> store(t, WORKER_ASLEEP(k), 0)
    :: else -> sleep_on(t, WORKER_ASLEEP(k))
    fi
  od
}

#define free(k) (state[k] == Free)
#ifdef WRONG_left_kept
#define left(k) false
#else
#define left(k) (state[k] == Left)
#endif
#define answered(t, k) (load(t, DONE(k)) == used[k])

/* Any free lane, else any left one, of these one that is answered. */
inline take(t) {
  do
  :: atomic {
      was_left = false;
      if
      :: free(0) -> callback_slot = 0; state[callback_slot] = Busy; user[callback_slot] = t; break
      :: free(SLOTS - 1) -> callback_slot = SLOTS - 1; state[callback_slot] = Busy; user[callback_slot] = t; break
      :: else ->
        if
        :: left(0) && (answered(t, 0) || !left(SLOTS - 1) || !answered(t, SLOTS - 1)) -> callback_slot = 0
        :: left(SLOTS - 1) && (answered(t, SLOTS - 1) || !left(0) || !answered(t, 0)) -> callback_slot = SLOTS - 1
        :: else -> callback_slot = SLOTS
        fi;
        if
        :: callback_slot < SLOTS -> state[callback_slot] = Busy; user[callback_slot] = t; was_left = true; break
        :: else -> waits_for_lane[t] = true
        fi
      fi
    };
    !waits_for_lane[t]
  od;
  if
#if !defined(WRONG_left_unanswered) && !defined(WRONG_callback_refilled)
  :: was_left -> await(t, callback_slot)
#endif
  :: else
  fi
}

inline fill(t, token) {
#ifndef WRONG_callback_refilled
  assert(answered(t, callback_slot)); /* else the worker ends the session */
#endif
  used[callback_slot]++;
#ifdef WRONG_callback_early
  release(t, SEQUENCE(callback_slot), used[callback_slot]);
#endif
  store(t, TOKEN(callback_slot), token);
  store(t, KIND(callback_slot), kind_of(token));
#ifndef WRONG_callback_early
  release(t, SEQUENCE(callback_slot), used[callback_slot]);
#endif
  wake_if_asleep(t, CALLBACKS_ASLEEP, GUEST)
}

inline notify_one() {
  if
  :: waits_for_lane[0] -> waits_for_lane[0] = false
  :: waits_for_lane[1] -> waits_for_lane[1] = false
  :: else
  fi
}

inline call_and_wait(t, token) {
  take(t);
  fill(t, token);
  await(t, callback_slot);
  assert(load(t, RESULT(callback_slot)) == result_of(token));
  atomic { fence(t); state[callback_slot] = Free };
  atomic { notify_one() }
}

inline call_and_leave(t, token) {
  take(t);
  fill(t, token);
  atomic { fence(t); state[callback_slot] = Left };
#ifndef WRONG_left_unnotified
  atomic { notify_one() }
#endif
}

proctype worker(byte t) {
  byte callback_slot, old;
  bool was_left;
  if
  :: t == WORKER ->
    call_and_wait(t, FUNCTION);
    call_and_leave(t, ITS_END)
  :: else ->
    call_and_leave(t, OBJECT);
#if SLOTS == 1
    call_and_wait(t, CALLBACK)
#endif
  fi
}

active proctype guest() {
  byte done[SLOTS];
  byte callback_slot, token, old, calls;
  run worker(WORKER);
  run worker(WORKER + 1);
  do
  :: calls == CALLS -> break
  :: else ->
    if
    :: load(GUEST, SEQUENCE(0)) != done[0] -> callback_slot = 0
    :: load(GUEST, SEQUENCE(SLOTS - 1)) != done[SLOTS - 1] -> callback_slot = SLOTS - 1
    :: else -> callback_slot = SLOTS
    fi;
    if
    :: callback_slot < SLOTS ->
      assert(load(GUEST, SEQUENCE(callback_slot)) == done[callback_slot] + 1);
      token = load(GUEST, TOKEN(callback_slot));
      assert(load(GUEST, KIND(callback_slot)) == kind_of(token));
      assert(!made[token] && (token != ITS_END || made[FUNCTION]));
      made[token] = true;
      calls++;
      done[callback_slot]++;
#ifdef WRONG_answer_early
      release(GUEST, DONE(callback_slot), done[callback_slot]);
#endif
      store(GUEST, RESULT(callback_slot), result_of(token));
#ifndef WRONG_answer_early
      release(GUEST, DONE(callback_slot), done[callback_slot]);
#endif
      wake_if_asleep(GUEST, WORKER_ASLEEP(callback_slot), user[callback_slot])
    :: else ->
      store(GUEST, CALLBACKS_ASLEEP, 1);
      fence(GUEST);
      if
      :: load(GUEST, SEQUENCE(0)) != done[0] || load(GUEST, SEQUENCE(SLOTS - 1)) != done[SLOTS - 1] ->
        store(GUEST, CALLBACKS_ASLEEP, 0)
      :: else -> sleep_on(GUEST, CALLBACKS_ASLEEP)
      fi
    fi
  od
}
