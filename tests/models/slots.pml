/* The life of a slot (ring/layout.h): guest processes that claim it, die at any point or give it back
 * (guest/session/slot_step.h), a worker that may die at any time, and the broker (host/broker/vm.cc). The owner has two
 * parts and a seal (ring/slot_owner.h). One slot, so that everything meets in it. Each change of the word is an atomic
 * operation or done by one process, so there are no store buffers; what is torn and late is modelled as steps.
 *
 * Holds: nobody takes the slot from a living holder; two never hold it; who holds it finds what a worker has filled and
 * nothing of the session before; and as long as somebody wants it, it comes back. Either the worker may die (with
 * WORKER_DIES), or the broker lose its patience with a living claimer: both at once are too many states.
 */
#ifdef WRONG_end_unchecked
#define WORKER_DIES
#endif

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

#define OPEN(epoch) (epoch)
#define GIVEN_UP(epoch) (64 | (epoch))
#define SUM(epoch, id) (128 | (epoch) << 2 | (id))

#define GUESTS 2

/* Shared. */
byte word = WORD(0, EMPTY);
byte owner, owner_too; /* its process, and when that started */
byte seal = OPEN(0);

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
#ifdef WORKER_DIES
#define CRASHES 1
#define IMPATIENCE 0
#else
#define CRASHES 0
#define IMPATIENCE 1
#endif
byte deaths = 1, crashes = CRASHES, impatience = IMPATIENCE;

/* One that was held up in its claim for two seconds has written over the owner of its successor. Nobody can tell then
 * whether that one lives: its slot comes back when it gives it back, or with its VM. */
bool scribbled;

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

#ifdef WRONG_owner_unsealed
#define believed true
#else
#define believed (s == SUM(EPOCH(seen), a) && a == b)
#endif

#define may_be_buried ((STATE(word) == CLAIMED || STATE(word) == DEAD) && owner != 0 && died[owner])

/* Judges the owner of a held slot, and gives the slot back if that one has died. */
inline bury() {
  atomic {
    seen = word;
    held = (STATE(seen) == CLAIMED || STATE(seen) == DEAD)
  };
  if
  :: held ->
    s = seal;
    a = owner;
    atomic {
      b = owner_too;
      done = (believed && a != 0 && (died[a] || a != b));
      s = 0;
      a = 0;
      b = 0
    };
    if
    :: done -> swap(seen, WITH(seen, RELEASED), done, true)
    :: else
    fi
  :: else
  fi;
  atomic { seen = 0; held = false; done = false }
}

/* A third process, which looks once, whenever that is. */
active proctype finder() {
  byte id, seen, a, b, s;
  bool done, held;
end:
  STATE(word) == CLAIMED || STATE(word) == DEAD;
  bury()
}

proctype guest(byte id) {
  byte seen, a, b, s;
  bool done, held;
  do
  :: may_be_buried -> bury()
  :: scribbled -> goto gone /* after 20 seconds */
  :: atomic { STATE(word) == READY -> seen = word };
    swap(seen, WITH(seen, CLAIMED), done, false);
    if
    :: !done
    :: done ->
      if
      :: DIE
      :: true
      fi;
      atomic { owner = id; scribbled = scribbled || seal != OPEN(EPOCH(seen)) };
      atomic { owner_too = id; scribbled = scribbled || seal != OPEN(EPOCH(seen)) };
      if
      :: DIE
      :: atomic {
          seal == OPEN(EPOCH(seen)) ->
          seal = SUM(EPOCH(seen), id);
          assert(holder == 0);
          holder = id
        };
        break
      :: seal != OPEN(EPOCH(seen)) ->
        swap(WITH(seen, CLAIMED), WITH(seen, RELEASED), done, true);
        done = false
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
  if
  :: !done -> swap(WITH(seen, DEAD), WITH(seen, RELEASED), done, false)
  :: else
  fi;

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
      owner_too = 0;
      seal = OPEN(EPOCH(NEXT(known)))
    };
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
#ifdef WRONG_unowned_by_look
      moved = (seal == OPEN(EPOCH(known)));
#else
      atomic {
        moved = (seal == OPEN(EPOCH(known)));
        if
        :: moved -> seal = GIVEN_UP(EPOCH(known))
        :: else
        fi
      };
#endif
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
    release()
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
  :: (STATE(known) == CLAIMED || STATE(known) == DEAD) && seal == OPEN(EPOCH(known)) &&
         (impatience > 0 || died[claimer]) ->
    /* it has waited for the owner for two seconds: of one that has died, or is only held up */
    atomic {
      if
      :: died[claimer]
      :: else -> impatience--
      fi
    };
    unowned = true;
    look();
    atomic { unowned = false; forget() }
  :: told_ready && worker == ready ->
    told_ready = false;
    move(WITH(known, READY));
    assert(moved);
    forget()
  :: worker == ended -> /* Vm::on_gone */
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
