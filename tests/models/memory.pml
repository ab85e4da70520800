/* Memory with store buffers. A model defines THREADS and PLACES, then includes this.
 *
 * Each thread has a buffer for each place, so its stores to one place stay in order and those to different places do
 * not: weaker than x86, whose threads have one buffer each. A store waits in its buffer until `drain` moves it to
 * memory, at any time; the thread itself sees it at once. A release store waits until all of its thread's earlier
 * stores have left; so does a fence, and what the processor does atomically. Loads are made in order.
 */
#ifndef DEPTH
#define DEPTH 2
#endif

byte memory[PLACES];
chan buffer[THREADS * PLACES] = [DEPTH] of { byte };
byte newest[THREADS * PLACES];
byte waiting[THREADS];

#define at(t, p) ((t) * PLACES + (p))
#define drained(t) (waiting[t] == 0)
#define load(t, p) (len(buffer[at(t, p)]) > 0 -> newest[at(t, p)] : memory[p])

#define store(t, p, v)         \
  atomic {                     \
    nfull(buffer[at(t, p)]);   \
    newest[at(t, p)] = v;      \
    buffer[at(t, p)]!newest[at(t, p)]; \
    waiting[t]++               \
  }
#define release(t, p, v)       \
  atomic {                     \
    drained(t);                \
    newest[at(t, p)] = v;      \
    buffer[at(t, p)]!newest[at(t, p)]; \
    waiting[t]++               \
  }
#define fence(t) drained(t)
#define exchange(t, p, v, old) \
  atomic {                     \
    drained(t);                \
    old = memory[p];           \
    memory[p] = v              \
  }

active [THREADS * PLACES] proctype drain() {
  byte i = _pid;
  byte v;
end:
  do
  :: atomic { buffer[i]?v; memory[i % PLACES] = v; waiting[i / PLACES]--; v = 0 }
  od
}
