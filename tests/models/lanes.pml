/* Calls from the worker to the program: ring/queue/lane.h as host/untrusted/lanes/lane_pool.h, host/untrusted/lanes/lanes.cc and
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
#ifndef LANES
#define LANES 1
#endif
#define THREADS 3
#define PLACES (1 + 6 * LANES)
#include "memory.pml"

#define WORKER 0 /* and 1 */
#define GUEST 2
#define CALLBACKS_ASLEEP 0
#define TOKEN(lane) (1 + 6 * (lane))
#define KIND(lane) (2 + 6 * (lane))
#define SEQUENCE(lane) (3 + 6 * (lane))
#define DONE(lane) (4 + 6 * (lane))
#define RESULT(lane) (5 + 6 * (lane))
#define WORKER_ASLEEP(lane) (6 + 6 * (lane))

#define FUNCTION 1
#define ITS_END 2
#define OBJECT 3
#define CALLBACK 4
#define CALLS (LANES == 1 -> 4 : 3) /* two lanes go without CALLBACK, which makes ten times the states */

#define kind_of(token) ((token) + 40)
#define result_of(token) ((token) + 70)

/* The worker's own words, which its lock guards: no store buffers between its threads. */
mtype = { Free, Busy, Left };
mtype state[LANES] = Free;
byte used[LANES];          /* the private count of each lane's uses */
bool waits_for_lane[2];    /* each thread, on the condition variable */
byte user[LANES];          /* the thread that may sleep on the lane */
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
      :: free(0) -> lane = 0; state[lane] = Busy; user[lane] = t; break
      :: free(LANES - 1) -> lane = LANES - 1; state[lane] = Busy; user[lane] = t; break
      :: else ->
        if
        :: left(0) && (answered(t, 0) || !left(LANES - 1) || !answered(t, LANES - 1)) -> lane = 0
        :: left(LANES - 1) && (answered(t, LANES - 1) || !left(0) || !answered(t, 0)) -> lane = LANES - 1
        :: else -> lane = LANES
        fi;
        if
        :: lane < LANES -> state[lane] = Busy; user[lane] = t; was_left = true; break
        :: else -> waits_for_lane[t] = true
        fi
      fi
    };
    !waits_for_lane[t]
  od;
  if
#if !defined(WRONG_left_unanswered) && !defined(WRONG_lane_refilled)
  :: was_left -> await(t, lane)
#endif
  :: else
  fi
}

inline fill(t, token) {
#ifndef WRONG_lane_refilled
  assert(answered(t, lane)); /* else the worker ends the session */
#endif
  used[lane]++;
#ifdef WRONG_lane_early
  release(t, SEQUENCE(lane), used[lane]);
#endif
  store(t, TOKEN(lane), token);
  store(t, KIND(lane), kind_of(token));
#ifndef WRONG_lane_early
  release(t, SEQUENCE(lane), used[lane]);
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
  await(t, lane);
  assert(load(t, RESULT(lane)) == result_of(token));
  atomic { fence(t); state[lane] = Free };
  atomic { notify_one() }
}

inline call_and_leave(t, token) {
  take(t);
  fill(t, token);
  atomic { fence(t); state[lane] = Left };
#ifndef WRONG_left_unnotified
  atomic { notify_one() }
#endif
}

proctype worker(byte t) {
  byte lane, old;
  bool was_left;
  if
  :: t == WORKER ->
    call_and_wait(t, FUNCTION);
    call_and_leave(t, ITS_END)
  :: else ->
    call_and_leave(t, OBJECT);
#if LANES == 1
    call_and_wait(t, CALLBACK)
#endif
  fi
}

active proctype guest() {
  byte done[LANES];
  byte lane, token, old, calls;
  run worker(WORKER);
  run worker(WORKER + 1);
  do
  :: calls == CALLS -> break
  :: else ->
    if
    :: load(GUEST, SEQUENCE(0)) != done[0] -> lane = 0
    :: load(GUEST, SEQUENCE(LANES - 1)) != done[LANES - 1] -> lane = LANES - 1
    :: else -> lane = LANES
    fi;
    if
    :: lane < LANES ->
      assert(load(GUEST, SEQUENCE(lane)) == done[lane] + 1);
      token = load(GUEST, TOKEN(lane));
      assert(load(GUEST, KIND(lane)) == kind_of(token));
      assert(!made[token] && (token != ITS_END || made[FUNCTION]));
      made[token] = true;
      calls++;
      done[lane]++;
#ifdef WRONG_answer_early
      release(GUEST, DONE(lane), done[lane]);
#endif
      store(GUEST, RESULT(lane), result_of(token));
#ifndef WRONG_answer_early
      release(GUEST, DONE(lane), done[lane]);
#endif
      wake_if_asleep(GUEST, WORKER_ASLEEP(lane), user[lane])
    :: else ->
      store(GUEST, CALLBACKS_ASLEEP, 1);
      fence(GUEST);
      if
      :: load(GUEST, SEQUENCE(0)) != done[0] || load(GUEST, SEQUENCE(LANES - 1)) != done[LANES - 1] ->
        store(GUEST, CALLBACKS_ASLEEP, 0)
      :: else -> sleep_on(GUEST, CALLBACKS_ASLEEP)
      fi
    fi
  od
}
