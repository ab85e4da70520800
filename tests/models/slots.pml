/* The life of a slot (ring/layout/layout_c.h): guest processes that claim it, die at any point or give it back
 * (guest/session/slot/slot_step.h), a worker that may die at any time, and the broker (host/broker/region/slot_step.h and vm/slot_table.cc). One
 * slot, so that everything meets in it. Each change of the word is an atomic operation, so there are no store buffers.
 *
 * Holds: nobody takes the slot from a living holder; two never hold it; who holds it finds what a worker has filled and
 * nothing of the session before; and as long as somebody wants it, it comes back.
 *
 * Taken for granted, since nothing in the code ensures it: an owner is seen whole or not at all, and a living claimer
 * writes it before the broker loses its patience.
 */
#define EMPTY 0
#define STARTING 1
#define READY 2
#define CLAIMED 3
#define RELEASED 4
#define DEAD 5

#define WORD(epoch, state) ((epoch) << 3 | (state))
#define STATE(word) ((word) & 7)
#define EPOCH(word) ((word) >> 3)
#define WITH(word, state) ((word) & 248 | (state))

#define GUESTS 2

/* Shared. */
byte word = WORD(0, EMPTY);
byte owner;

/* What is so, whoever knows it. */
bool died[GUESTS + 1];
byte claimer;    /* who has taken the word last */
byte holder;     /* a living process whose claim is complete */
bool filled;     /* the slot's header, by a worker */
bool dirty;      /* something of a session */

/* The worker: none, starting, ready, or ended and not yet noticed. */
mtype = { none, starting, ready, ended };
mtype worker = none;
bool told_ready;  /* its message to the broker */
bool told_to_end; /* its socket is closed */

/* How often things go wrong, at most. */
byte deaths = 1, crashes = 1;

#define take(to) word = (to); claimer = (STATE(word) == CLAIMED -> id : claimer)

/* A guest's step on the word. `of_the_dead`: no living process may hold the slot that it takes away. */
inline swap(from, to, done, of_the_dead) {
#ifdef WRONG_step_by_store
  done = (word == (from));
  if
  :: done -> atomic { take(to); assert(!of_the_dead || holder == 0) }
  :: else
  fi
#else
  atomic {
    done = (word == (from));
    if
    :: done -> take(to); assert(!of_the_dead || holder == 0)
    :: else
    fi
  }
#endif
}

#define DIE                                \
  atomic {                                 \
    deaths > 0 -> deaths--;                \
    died[id] = true;                       \
    if :: holder == id -> holder = 0 :: else fi; \
    goto gone                              \
  }

#define may_be_buried ((STATE(word) == CLAIMED || STATE(word) == DEAD) && owner != 0 && died[owner])

/* Judges the owner of a held slot, and gives the slot back if that one has died. */
inline bury() {
  atomic {
    seen = word;
    done = (STATE(seen) == CLAIMED || STATE(seen) == DEAD)
  };
  done = (done && owner != 0 && died[owner]);
#ifdef WRONG_buried_unseen
  atomic {
    seen = word;
    done = (done && (STATE(seen) == CLAIMED || STATE(seen) == DEAD))
  };
#endif
  if
  :: done -> swap(seen, WITH(seen, RELEASED), done, true)
  :: else
  fi;
  atomic { seen = 0; done = false }
}

/* A third process, which looks once, whenever that is. */
active proctype finder() {
  byte id, seen;
  bool done;
end:
  STATE(word) == CLAIMED || STATE(word) == DEAD;
  bury()
}

proctype guest(byte id) {
  byte seen;
  bool done;
  do
  :: may_be_buried -> bury()
  :: atomic { STATE(word) == READY -> seen = word };
#ifdef WRONG_owner_early
    owner = id;
#endif
    swap(seen, WITH(seen, CLAIMED), done, false);
    if
    :: !done ->
      if
      :: DIE
      :: true
      fi
    :: done ->
      if
      :: DIE
      :: true
      fi;
      if
      :: DIE
      :: atomic {
          assert(holder == 0 && STATE(word) != RELEASED && EPOCH(word) == EPOCH(seen));
#ifndef WRONG_owner_early
          owner = id;
#endif
          holder = id
        };
        break
      fi
    fi
  od;

  /* It holds the slot. */
  if
  :: atomic { STATE(word) == CLAIMED && worker == ready -> assert(filled && !dirty); dirty = true }
  :: STATE(word) == DEAD || worker != ready -> dirty = true
  fi;
  if
  :: DIE
  :: holder = 0
  fi;
  swap(WITH(seen, CLAIMED), WITH(seen, RELEASED), done, false);
#ifndef WRONG_dead_kept
  if
  :: !done -> swap(WITH(seen, DEAD), WITH(seen, RELEASED), done, false)
  :: else
  fi;
#endif

gone:
  atomic { seen = 0; done = false }
}

active proctype life_of_workers() {
end:
  do
  :: atomic { worker == starting -> filled = true; worker = ready; told_ready = true }
  :: atomic { (worker == starting || worker == ready) && crashes > 0 -> crashes--; worker = ended }
  :: atomic { (worker == starting || worker == ready) && told_to_end -> worker = ended }
  od
}

/* ---- the broker: one thread, so its own words need no care ---- */

inline move(to) {
  atomic {
    if
    :: word == known -> word = (to); known = (to); moved = true
    :: else -> moved = false
    fi
  }
}

#ifdef WRONG_epoch_kept
#define NEXT(word) WORD(EPOCH(word), EMPTY)
#else
#define NEXT(word) WORD((EPOCH(word) + 1) & 15, EMPTY)
#endif

/* With one slot, the next worker is started as soon as there is an Empty one. */
inline make_empty() {
  moved = true;
  if
  :: STATE(known) == READY -> move(WITH(known, STARTING))
  :: else
  fi;
  if
  :: moved ->
    atomic {
      assert(holder == 0 && !has_worker);
      claimer = 0;
      dirty = false;
      filled = false
    };
    owner = 0;
    atomic {
      move(NEXT(known));
      assert(moved);
      move(WITH(known, STARTING));
      assert(moved);
      has_worker = true;
      told_to_end = false;
      told_ready = false;
      worker = starting
    }
  :: else /* a guest was faster: a look tells */
  fi
}

inline release() {
  known = WITH(known, RELEASED);
  if
  :: has_worker -> told_to_end = true
  :: else -> make_empty()
  fi
}

inline look() {
  seen = word;
  if
  :: seen == known ->
    if
    :: (STATE(known) == CLAIMED || STATE(known) == DEAD) && unowned ->
      moved = (owner == 0);
      if
      :: moved ->
        atomic {
          if
          :: word == known -> word = WITH(known, RELEASED); assert(holder == 0)
          :: else
          fi
        };
        release()
      :: else
      fi
    :: else
    fi
  :: STATE(known) == READY && seen == WITH(known, CLAIMED) -> known = seen
  :: seen == WITH(known, RELEASED) && (STATE(known) == READY || STATE(known) == CLAIMED || STATE(known) == DEAD) ->
#ifdef WRONG_passage_missed
    if
    :: STATE(known) == READY -> word = known /* put back */
    :: else -> release()
    fi
#else
    release()
#endif
  :: else -> assert(seen == known) /* nobody scribbles here */
  fi;
  if
  :: STATE(known) == CLAIMED && !has_worker -> move(WITH(known, DEAD))
  :: else
  fi
}

/* What the broker has seen matters no more. */
#define forget() atomic { seen = 0; before = 0; moved = false }

active proctype broker() {
  byte known = WORD(0, EMPTY);
  byte seen, before;
  bool has_worker, moved, unowned;
  atomic {
    byte g;
    for (g : 1 .. GUESTS) {
      run guest(g)
    }
    g = 0
  };
  move(WITH(known, STARTING));
  has_worker = true;
  worker = starting;
end:
  do
  :: word != known -> look(); forget()
  :: (STATE(known) == CLAIMED || STATE(known) == DEAD) && owner == 0 && died[claimer] ->
    /* it has waited for the owner for two seconds */
    unowned = true;
    look();
    atomic { unowned = false; forget() }
  :: told_ready && worker == ready ->
    told_ready = false;
    move(WITH(known, READY));
    assert(moved);
    forget()
  :: worker == ended -> /* WorkerPool::on_gone */
    worker = none;
    told_ready = false;
    has_worker = false;
    before = known;
    look();
#ifdef WRONG_end_unchecked
    if
    :: true ->
#else
    if
    :: STATE(before) != RELEASED && (STATE(known) == RELEASED || EPOCH(known) != EPOCH(before))
    :: else ->
#endif
      if
      :: STATE(known) == STARTING || STATE(known) == READY || STATE(known) == RELEASED -> make_empty()
      :: else
      fi
    fi;
    forget()
  od
}
