/* Opening channels: guest threads set their bit in the slot's `opened` and ring; the doorbell thread starts a thread for
 * each new bit (host/untrusted/serve.cc). Both guest steps are atomic operations or system calls, which order everything,
 * so there are no store buffers here.
 *
 * Holds: every channel that was opened is started.
 */
#define CHANNELS 3

byte opened;
byte started;
byte doorbell; /* an eventfd: what rings add up to until it is read */

active [CHANNELS] proctype guest() {
  byte mine = 1 << _pid;
  opened = opened | mine;
  doorbell++;
  (started & mine) != 0 /* its first record is answered */
}

active proctype doorbell_thread() {
  do
  :: started = started | opened;
#ifdef WRONG_doorbell_order
    doorbell = 0;
end:
    doorbell > 0
#else
end:
    atomic { doorbell > 0 -> doorbell = 0 }
#endif
  od
}
