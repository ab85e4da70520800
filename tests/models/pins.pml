/* Pages that outlive their process: a device of the guest still writes into a slot when the process that held it has
 * ended. The guest's kernel says so by the entry's word `pinned` (guest/kmod/slots.c); its VM may be reset and boot
 * another kernel, or end; the broker (host/broker/vm/slot_table.cc) ends the worker, scrubs the slot and gives it to the next. One
 * session's end, at any of whose steps the kernel or the VM may end. The words change by atomic operations or are
 * published by one (the step to Released; the ring), so there are no store buffers.
 *
 * Holds: nobody scrubs a slot or gives it away while the device writes there; the worker, and the GPU's memory with it,
 * goes at once, however long the device writes; and when the device is done, or its VM is, the slot comes back.
 *
 * Two mistakes that the kernel's side could make are switches of this model alone, since that side is C for the kernel:
 * WRONG_pinned_late and WRONG_pinned_at_binding.
 */
#define CLAIMED 0
#define RELEASED 1
#define READY 2 /* scrubbed, and the next session's */

/* Shared. */
byte word = CLAIMED;
bool pinned;
bool rung;    /* the broker's doorbell */
bool hung_up; /* QEMU's connection, at its end */

/* What is so, whoever knows it. */
bool writing;       /* a device, a page of the slot */
byte kernel = 1;    /* which one runs; 0: the VM has ended */
bool worker = true; /* the session's */
bool told_to_end;
bool told_gone;

/* A step of this kernel's, if it still runs. */
#define STEP(change)                      \
  if                                      \
  :: atomic { kernel == own -> change }   \
  :: kernel != own -> goto gone           \
  fi

/* Nobody maps the slot any more, so no page of it comes into use. The device may be done at any time. */
proctype ends_slot(byte own) {
  bool in_use;
  STEP(in_use = writing);
#ifndef WRONG_pinned_late
  if
  :: in_use -> STEP(pinned = true)
  :: else
  fi;
#endif
  STEP(word = RELEASED);
#ifdef WRONG_pinned_late
  if
  :: in_use -> STEP(pinned = true)
  :: else
  fi;
#endif
  STEP(rung = true);
  if
  :: in_use ->
end:
    !writing || kernel != own;
    STEP(pinned = false);
    STEP(rung = true)
  :: else
  fi;
gone:
  in_use = false
}

/* The next kernel finds what the one before has left. No device writes for that one any more. */
proctype binds(byte own) {
#ifndef WRONG_pinned_at_binding
  STEP(pinned = false);
#endif
  STEP(word = (word == CLAIMED -> RELEASED : word));
  STEP(rung = true);
gone:
  skip
}

active proctype device() {
  if
  :: writing = false
  :: true /* it writes for ever */
  fi
}

active proctype vm() {
  atomic {
    if
    :: writing = true
    :: true
    fi;
    run ends_slot(1)
  };
  if
  :: atomic { kernel = 2; writing = false; run binds(2) } /* it is reset */
  :: true
  fi;
  if
  :: atomic { kernel = 0; writing = false; hung_up = true }
  :: true
  fi
}

/* Another process of the VM rings for a slot of its own, whenever that is, and the broker looks at all. */
active proctype neighbour() {
  rung = true
}

active proctype life_of_worker() {
end:
  told_to_end;
  worker = false;
  told_gone = true
}

/* ---- the broker: one thread ---- */

inline scrub() {
  assert(!writing && !worker);
  known = READY;
  word = READY
}

/* Preconditions: the worker has gone. */
inline start_emptying() {
#ifdef WRONG_pins_unseen
  held_back = false;
#else
  held_back = pinned;
#endif
  if
  :: held_back
  :: else -> scrub()
  fi
}

inline look_at_pins() {
  if
  :: held_back && !pinned -> start_emptying()
  :: else
  fi
}

inline release() {
  known = RELEASED;
#ifdef WRONG_worker_kept
  !pinned;
#endif
  if
  :: has_worker -> told_to_end = true
  :: else -> start_emptying()
  fi
}

inline look() {
  if
  :: known == CLAIMED && word == RELEASED -> release()
  :: else
  fi;
  look_at_pins()
}

active proctype broker() {
  byte known = CLAIMED;
  bool has_worker = true, held_back;
end:
  do
  :: atomic { rung -> rung = false }; look()
  :: told_gone ->
    told_gone = false;
    has_worker = false;
    if
    :: known == RELEASED -> start_emptying()
    :: else
    fi
  :: hung_up ->
    hung_up = false;
    look();
    if
    :: known == CLAIMED -> word = RELEASED; release()
    :: else
    fi;
#ifndef WRONG_pins_outlive
    if
    :: known == RELEASED -> pinned = false
    :: else
    fi;
    look_at_pins()
#endif
  od
}

/* When nothing more happens by itself. */
active proctype at_the_end() {
  timeout;
  assert(!worker);
  assert(word == READY || writing)
}
