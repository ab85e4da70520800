/* Order across threads (guest/objects/memory/last_use.h, guest/objects/objects.cc, guest/marshal/done_question.h, `executed` in
 * host/untrusted/channel.cc).
 *
 * Threads A and A2 share channel 0, B has channel 1. All use one object, at a time or, where the program says so, one
 * after the other; C comes when all have returned. Then B destroys the object and A creates another, which may get its
 * id. Each channel's worker executes its records in order, and late.
 *
 * The object was found done before its first use here. It may be an event that a graph records: then A's use is a launch
 * of the graph, whose record does not name the event.
 *
 * Holds: what comes after in the program executes after; nobody who comes after A's use takes the object for done before
 * that; an id names one object at a time on the host.
 */
#define THREADS 6
#define PLACES 4
#include "memory.pml"

#define A 0
#define A2 1
#define B 2
#define C 3
#define WORKER(channel) (4 + (channel))
#define POSTED(channel) (channel)
#define EXECUTED(channel) (2 + (channel))

#define USE(channel, position) (((channel) + 1) << 4 | (position))
#define CHANNEL(use) (((use) >> 4) - 1)
#define POSITION(use) ((use) & 15)
#define BY_GRAPHS 128 /* a bit beside the use */
#define NAMED(word) ((word) & 127)
#define FOUND_DONE 0 /* what the object remembered when it was found done */

/* The guest's own words and locks, with the program's own order: no store buffers between its threads. */
byte last_use;
bool locked[2];
byte returned;     /* threads whose call has returned */
byte posted_by[4]; /* position + 1 of each thread's record */

/* What has happened on the host. */
bool executed_for[4];
byte alive; /* objects behind the id */
bool destroyed;
bool reused;

#define awaited(t, use) (load(t, EXECUTED(CHANNEL(use))) >= POSITION(use))

inline wait_for_all(t, channel) {
  for (other : 0 .. 1) {
    if
    :: other != channel ->
      seen = load(t, POSTED(other));
      load(t, EXECUTED(other)) >= seen
    :: else
    fi
  };
  other = 0
}

inline await_others(t, channel) {
#ifdef WRONG_order_not_awaited
  skip
#else
  seen = last_use;
  if
#ifndef WRONG_graphs_by_last_use
  :: (seen & BY_GRAPHS) != 0 -> wait_for_all(t, channel)
#endif
  :: else ->
    seen = NAMED(seen);
    if
    :: seen != 0 && CHANNEL(seen) != channel -> awaited(t, seen)
    :: else
    fi
  fi
#endif
}

inline post(t, channel) {
  atomic { !locked[channel] -> locked[channel] = true };
  position = load(t, POSTED(channel)) + 1;
  posted_by[t] = position;
  release(t, POSTED(channel), position);
  fence(t); /* must_wake, and the lock */
  locked[channel] = false
}

#ifdef WRONG_graphs_forgotten
#define KEPT(word) 0
#else
#define KEPT(word) ((word) & BY_GRAPHS)
#endif

inline remember(t, channel) {
  seen = last_use;
  do
  :: NAMED(seen) != 0 && CHANNEL(NAMED(seen)) == channel && POSITION(seen) > position ->
#ifdef WRONG_use_set_back
    atomic {
      if
      :: last_use == seen -> last_use = USE(channel, position) | KEPT(seen); break
      :: else -> seen = last_use
      fi
    }
#else
    break
#endif
  :: else ->
#ifndef WRONG_use_forgotten
    if
    :: NAMED(seen) != 0 && CHANNEL(NAMED(seen)) != channel -> awaited(t, NAMED(seen))
    :: else
    fi;
#endif
    atomic {
      if
      :: last_use == seen -> last_use = USE(channel, position) | KEPT(seen); break
      :: else -> seen = last_use
      fi
    }
  od
}

/* Whether the guest answers by itself that the object is done. */
#ifdef WRONG_graphs_known_done
#define known_done (NAMED(last_use) == FOUND_DONE)
#else
#define known_done (last_use == FOUND_DONE)
#endif

bool b_after_a;
bool a_after_b;
bool a_launches;

proctype user(byte t; byte channel) {
  byte seen, position, other;
  if
  :: t == B && b_after_a ->
    (returned & (1 << A)) != 0;
    assert(!known_done || executed_for[A])
  :: t == A && a_after_b -> (returned & (1 << B)) != 0
  :: else
  fi;
  if
  :: t == A && a_launches ->
#ifndef WRONG_launch_overtakes
    wait_for_all(t, channel);
#endif
    post(t, channel)
  :: else ->
    await_others(t, channel);
    post(t, channel);
    remember(t, channel)
  fi;
  atomic { returned = returned | 1 << t; seen = 0; position = 0 }
}

/* A record's worker: the first two records of channel 0 and the first of channel 1 are uses. */
proctype worker(byte channel) {
  byte position;
  byte t;
  byte uses = 2 - channel;
  for (position : 1 .. uses) {
    load(WORKER(channel), POSTED(channel)) >= position;
#ifdef WRONG_executed_early
    release(WORKER(channel), EXECUTED(channel), position);
#endif
    atomic {
      t = (posted_by[A] == position -> A : A2);
      t = (channel == 1 -> B : t);
      assert(!(t == B && b_after_a) || executed_for[A]);
      assert(!(t == A && a_after_b) || executed_for[B]);
      executed_for[t] = true;
      t = 0
    };
#ifndef WRONG_executed_early
    release(WORKER(channel), EXECUTED(channel), position);
#endif
  };
  /* the object's end on channel 1, another one's beginning on channel 0 */
  load(WORKER(channel), POSTED(channel)) >= uses + 1;
  atomic {
    if
    :: channel == 1 -> alive--
    :: channel == 0 && reused -> assert(alive == 0); alive++
    :: else
    fi
  }
  release(WORKER(channel), EXECUTED(channel), uses + 1)
}

#define ALL (1 << A | 1 << A2 | 1 << B)

active proctype program() {
  byte seen, position, other;
  atomic {
    alive = 1;
    if
    :: b_after_a = true
    :: a_after_b = true
    :: skip
    fi;
    if
    :: a_launches = true; last_use = FOUND_DONE | BY_GRAPHS
    :: a_launches = false
    fi;
    run worker(0);
    run worker(1);
    run user(A, 0);
    run user(A2, 0);
    run user(B, 1)
  };
  returned == ALL;
  /* C, whose channel nobody else uses and whose worker is at once */
  await_others(C, 9);
  assert(executed_for[A] && executed_for[A2] && executed_for[B]);
  /* B destroys the object; then A creates one: the id of the old one, if its end was executed, else a fresh one. */
  await_others(B, 1);
  post(B, 1);
#ifdef WRONG_early_reuse
  reused = true;
#else
  reused = (load(A, EXECUTED(1)) >= 2);
#endif
  post(A, 0)
}
