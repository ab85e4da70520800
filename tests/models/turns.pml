/* Turns on one GPU: ring/turn_gate.h as host/session/turns.cc uses it in two workers, and the scheduler
 * (host/turns/policy.cc), which may end a turn, lose its patience or give up turns at any time. Futexes have no
 * time-out.
 *
 * Holds: while a worker's turn is in force, the other worker has no channel inside the gate and no work that runs.
 * Except where the scheduler has lost its patience with that one, until it answers again, and for work that waits for a
 * value in memory. Everybody gets the turn that
 * it waits for: a lost hand-over is an end state that pan calls invalid.
 *
 * Where a fence follows a store at once, or an atomic operation or a system call makes one, they are one step: the
 * thread does nothing in between. Work runs until somebody waits for it, which is the worst that it can do.
 */
#define THREADS 5
#define PLACES 7
#include "memory.pml"

#define WORKERS 2
#define CHANNELS 3
#define worker_of(c) ((c) / 2)
#define keeper_of(w) (CHANNELS + (w))

#define INSIDE(c) (c)
#define WITHDRAWN(w) (3 + (w))
#define USED(w) (5 + (w))

#define store_and_fence(t, p, v) atomic { fence(t); memory[p] = v }

#define OPEN 0
#define CLOSED 1
#define TURN 2
#define MODE(grant) ((grant) & 3)
#define NUMBER(grant) ((grant) >> 2)

/* Of WITHDRAWN, beside a number. */
#define FOR_GOOD 128
#define NO_TURN 64

byte grant[WORKERS];
byte given_back[WORKERS];
byte held_up[WORKERS]; /* the grant under which what is left waits for a value in memory */
byte wants[WORKERS]; /* `waiting` */

/* What is so, whoever knows it. */
#define NOBODY 255
byte holder = NOBODY;   /* whose turn is in force */
bool taken;             /* by a channel, at least once */
bool excused[WORKERS];  /* the scheduler has lost its patience with it */
byte inside[WORKERS];   /* channels that were let in and have not left */
bool running[WORKERS];  /* on the GPU */
bool submitted_by_1, blocked; /* channel 0, in a call that waits for what channel 1 submits */
bool awaits, stands;          /* what channel 0 submits waits for what channel 2 submits; it does so now */

/* How often each may happen, at most. A world is one choice of these and of the threads. */
byte changes;     /* of the regime */
byte others;      /* one worker is let in until the other one has answered, before the first turn */
byte overlong;    /* the scheduler loses its patience */
byte hasty;       /* a turn is ended before those who wait for it have come in */
byte withdrawals; /* a keeper finds its worker quiet */

#define may_work(w) (holder == NOBODY || holder == (w) || excused[w])

/* ---- a channel ---- */

inline note_use() {
  if
  :: load(c, USED(w)) == 0 -> store(c, USED(w), 1)
  :: else
  fi
}

proctype channel(byte c; bool again) {
  byte w = worker_of(c);
  byte under, withdrawn;
  bool waits, shut;
enter:
#ifdef WRONG_entry_fence
  store(c, INSIDE(c), 1);
#else
  store_and_fence(c, INSIDE(c), 1);
#endif
  under = grant[w];
  atomic {
    withdrawn = load(c, WITHDRAWN(w));
    if
    :: MODE(under) == OPEN || (MODE(under) == TURN && (withdrawn & ~FOR_GOOD) != NUMBER(under)) ->
      assert(may_work(w));
      inside[w]++;
      taken = (taken || holder == w);
      under = 0;
      withdrawn = 0;
      goto submit
    :: else ->
#ifdef WRONG_withdrawal_slept
      shut = true;
#else
      shut = (MODE(under) == CLOSED || withdrawn != NUMBER(under));
#endif
      withdrawn = 0
    fi
  };
  store_and_fence(c, INSIDE(c), 0);
  if
  :: !waits -> atomic { waits = true; wants[w]++ }
  :: waits && shut -> grant[w] != under /* sleeps */
  :: waits && !shut -> grant[w] != under || load(c, WITHDRAWN(w)) != NUMBER(under) /* looks again */
  fi;
  atomic { under = 0; shut = false };
  goto enter;

submit:
#ifdef WRONG_use_noted_early
  note_use();
#endif
  atomic {
    if
    :: waits -> waits = false; wants[w]--
    :: else
    fi;
    assert(may_work(w));
    running[w] = true;
#ifndef WRONG_use_noted_early
    note_use()
#endif
  };
  atomic { /* leaves */
#ifndef WRONG_leave_relaxed
    fence(c);
#endif
    memory[INSIDE(c)] = 0;
    inside[w]--;
    if
    :: c == 0 -> blocked = !submitted_by_1; stands = awaits
    :: c == 1 -> submitted_by_1 = true
    :: c == 2 -> awaits = false; stands = false
    :: else
    fi
  };
  if
  :: c == 0 && blocked -> atomic { submitted_by_1; blocked = false }
  :: else
  fi;
  if
  :: again -> again = false; goto enter
  :: else
  fi
}

/* In place of a channel of the second worker: waits for a turn and does nothing in it. */
proctype rival() {
  wants[1]++;
  atomic { MODE(grant[1]) != CLOSED -> wants[1]-- }
}

/* ---- a keeper ---- */

#define quiet(w) (inside[w] == 0 && wants[w] == 0 && !(w == 0 && blocked))

inline look_inside() {
  anybody = (load(k, INSIDE(2 * w)) != 0);
  if
  :: !anybody && w == 0 -> anybody = (load(k, INSIDE(1)) != 0)
  :: else
  fi
}

/* Waits for what has been submitted, if a channel has noted that. */
inline wait_for_work() {
#ifdef WRONG_answer_undrained
  skip
#else
  atomic {
    exchange(k, USED(w), 0, old);
    if
    :: old != 0 -> running[w] = false; old = 0
    :: else
    fi
  }
#endif
}

inline withdraw() {
#ifdef WRONG_keeper_fence
  store(k, WITHDRAWN(w), NUMBER(seen));
#else
  store_and_fence(k, WITHDRAWN(w), NUMBER(seen));
#endif
#ifndef WRONG_withdrawn_unseen
  look_inside();
#endif
  if
  :: anybody -> store_and_fence(k, WITHDRAWN(w), NO_TURN)
  :: else -> store_and_fence(k, WITHDRAWN(w), NUMBER(seen) + FOR_GOOD)
  fi
}

inline answer_end() {
  do
  :: look_inside();
    if
    :: anybody && grant[w] == seen -> anybody = false
    :: anybody && grant[w] != seen -> anybody = false; break
    :: !anybody && w == 0 && stands && grant[w] != seen -> break
    :: !anybody && w == 0 && stands && grant[w] == seen ->
      held_up[w] = NUMBER(seen);
      !stands || grant[w] != seen /* asks again and again */
    :: !anybody && !(w == 0 && stands) ->
      wait_for_work();
      if
      :: grant[w] == seen -> given_back[w] = NUMBER(seen)
      :: else
      fi;
      break
    fi
  od
}

proctype keeper(byte w) {
  byte k = keeper_of(w);
  byte seen, old;
  bool anybody;
end:
  do
  :: atomic { grant[w] != seen; seen = grant[w] }; /* sleeps */
    if
    :: MODE(seen) == TURN ->
end_of_hold:
      do
      :: grant[w] != seen -> break
      :: atomic { withdrawals > 0 && quiet(w) -> withdrawals-- };
        withdraw();
        if
        :: anybody -> anybody = false
        :: else ->
          wait_for_work();
          given_back[w] = NUMBER(seen);
          break
        fi
      od
    :: MODE(seen) == CLOSED -> answer_end()
    :: else
    fi
  od
}

/* ---- the scheduler ---- */

#define is_answered(w) (given_back[w] == NUMBER(grant[w]))

#ifdef WRONG_answer_unnumbered
#define is_over(w) (given_back[w] != 0)
#else
#ifdef WRONG_early_unheard
#define is_over(w) (NUMBER(grant[w]) != turn && (given_back[w] == turn || given_back[w] == NUMBER(grant[w])))
#else
#define is_over(w) (given_back[w] == turn || given_back[w] == NUMBER(grant[w]))
#endif
#endif

#ifdef WRONG_held_up_unheard
#define is_held_up(w) false
#else
#define is_held_up(w) (held_up[w] != 0 && held_up[w] == NUMBER(grant[w]))
#endif

inline give(w, mode) {
  atomic {
    number++;
    assert(number < 24); /* else turns are passed on and on, and nobody comes in */
    grant[w] = (number << 2) | (mode)
  }
}

inline next_turn(w) {
  atomic {
    assert((inside[1 - w] == 0 && (!running[1 - w] || is_held_up(1 - w))) || excused[1 - w]);
    holder = w;
    taken = false;
    give(w, TURN);
    turn = number
  }
}

/* While the other one's work does not end. */
inline let_in(w) {
  others--;
  give(w, OPEN);
  is_answered(1 - w);
  give(w, CLOSED)
}

active proctype scheduler() {
  byte number, turn;
  bool ended;
  atomic {
    memory[WITHDRAWN(0)] = NO_TURN;
    memory[WITHDRAWN(1)] = NO_TURN;
    run keeper(0);
    run keeper(1);
    if
    :: changes = 1; withdrawals = 1; hasty = 1; submitted_by_1 = true; run channel(0, true); run channel(2, false)
    :: changes = 1; withdrawals = 1; overlong = 1; submitted_by_1 = true; run channel(0, false); run channel(2, false)
    :: changes = 1; others = 1; submitted_by_1 = true; run channel(0, true); run channel(2, false)
    :: changes = 3; withdrawals = 1; submitted_by_1 = true; run channel(0, false); run channel(2, false)
    :: changes = 1; withdrawals = 1; run channel(0, false); run channel(1, false); run rival()
    :: changes = 1; withdrawals = 2; run channel(0, true); run channel(1, false)
    :: changes = 1; submitted_by_1 = true; awaits = true; run channel(0, false); run channel(2, false)
    fi
  };
end_of_slices:
  do
  :: changes > 0 ->
    changes--;
    give(0, CLOSED);
    give(1, CLOSED);
    do
#ifdef WRONG_first_unanswered
    :: break
#endif
    :: atomic {
        (is_answered(0) || is_held_up(0)) && (is_answered(1) || is_held_up(1)) ->
        excused[0] = false;
        excused[1] = false
      };
      break
    :: atomic {
        overlong > 0 -> overlong--;
        excused[0] = (excused[0] || !is_answered(0));
        excused[1] = (excused[1] || !is_answered(1))
      };
      break
    :: others > 0 && is_answered(0) && !is_answered(1) -> let_in(0)
    :: others > 0 && is_answered(1) && !is_answered(0) -> let_in(1)
    od;
end_of_turns:
    do
    :: holder == NOBODY && wants[0] > 0 -> next_turn(0)
    :: holder == NOBODY && wants[1] > 0 -> next_turn(1)
    :: atomic { holder != NOBODY && is_over(holder) -> excused[holder] = false; ended = false; holder = NOBODY }
    :: atomic {
        holder != NOBODY && !ended && wants[1 - holder] > 0 && (taken || wants[holder] == 0 || hasty > 0) ->
        hasty = (taken || wants[holder] == 0 -> hasty : hasty - 1);
        ended = true
      };
      give(holder, CLOSED)
    :: atomic { holder != NOBODY && ended && is_held_up(holder) -> ended = false; holder = NOBODY }
    :: atomic {
        holder != NOBODY && ended && overlong > 0 -> overlong--;
        excused[holder] = true;
        ended = false;
        holder = NOBODY
      }
    :: atomic { changes > 0 -> changes--; ended = false; holder = NOBODY };
      give(0, OPEN);
      give(1, OPEN);
      break
    od
  od
}
