// A scope in which pthread_cancel() does not end the calling thread: sleeps, reads and writes in the scope are no
// cancellation points. A thread that ended inside a call would keep the call's locks and a half-written record.
//
// Each function of this library that calls a cancellation point opens this scope. Entry points do not open it: a posted
// call has no cancellation point, and would pay for the scope each time.
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
