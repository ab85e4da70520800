// A scope in which the calling thread is not cancelled (pthread_cancel): its sleeps, reads and writes are no cancellation
// points. A thread that ended in a call would keep the call's locks, and the record that it was writing.
//
// Each function of this library that calls a cancellation point has one of these. The call sites and not the entry points
// have them, since a posted call has no such point, and would pay for it each time.
#pragma once

#include <pthread.h>

namespace guest {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace guest
