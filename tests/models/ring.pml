/* The request ring (ring/queue/record_ring.h): four units of 16 bytes, records of one or two in any order, padding at the
 * wrap. Each unit holds which record it is part of.
 *
 * Holds: the consumer finds the records that were written, in order and whole, and no record waits for ever.
 */
#define THREADS 2
#define PLACES 6
#include "memory.pml"

#define PRODUCER 0
#define CONSUMER 1
#define TAIL 0
#define HEAD 1
#define UNIT(position) (2 + ((position) & 3))
#define SIZE 4
#define RECORDS 5

#ifdef WRONG_full_by_one
#define room(used) (SIZE - ((used) & 255) + 1)
#else
#define room(used) (SIZE - ((used) & 255))
#endif

#define PADDING 128
#define FIRST(n, units) ((units) << 4 | (n))
#define SECOND(n) (64 | (n))

active proctype producer() {
  byte tail, seen_head, n, units, pad, need;
  for (n : 1 .. RECORDS) {
    if
    :: units = 1
    :: units = 2
    fi;
    pad = (units > SIZE - (tail & 3) -> SIZE - (tail & 3) : 0);
#ifdef WRONG_padding_free
    need = units;
#else
    need = pad + units;
#endif
    if
    :: need <= room(tail - seen_head)
    :: else -> atomic { need <= room(tail - load(PRODUCER, HEAD)) -> seen_head = load(PRODUCER, HEAD) }
    fi;
    if
    :: pad > 0 -> store(PRODUCER, UNIT(tail), PADDING + pad); tail = tail + pad
    :: else
    fi;
    store(PRODUCER, UNIT(tail), FIRST(n, units));
    if
    :: units == 2 -> store(PRODUCER, UNIT(tail + 1), SECOND(n))
    :: else
    fi;
    tail = tail + units;
    release(PRODUCER, TAIL, tail)
  }
}

active proctype consumer() {
  byte head, seen_tail, n, unit, units;
  n = 1;
  do
  :: n > RECORDS -> break
  :: else ->
    if
    :: seen_tail == head -> atomic { load(CONSUMER, TAIL) != head -> seen_tail = load(CONSUMER, TAIL) }
    :: else
    fi;
    unit = load(CONSUMER, UNIT(head));
    if
    :: unit >= PADDING ->
      head = head + unit - PADDING;
      release(CONSUMER, HEAD, head)
    :: else ->
      units = unit >> 4;
      assert(unit == FIRST(n, units) && (units == 1 || units == 2));
#ifdef WRONG_early_room
      release(CONSUMER, HEAD, head + units);
#endif
      if
      :: units == 2 -> assert(load(CONSUMER, UNIT(head + 1)) == SECOND(n))
      :: else
      fi;
      head = head + units;
#ifndef WRONG_early_room
      release(CONSUMER, HEAD, head);
#endif
      n++
    fi
  od;
  assert(load(CONSUMER, TAIL) == head)
}
