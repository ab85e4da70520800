// The state of one thread of the program: the thread's channel, its stack of current contexts, and the variant of the
// entry point that it is in. Only the thread itself uses this state, except `calls`.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "guest/objects/objects.h"
#include "guest/session/slot/liveness.h"
#include "ring/api/cuda.h"

namespace guest {

class Channel;
struct Context;

class Thread {
 public:
  Channel* channel = nullptr;
  std::vector<Context*> contexts;  // the last element is the current context
  // The thread is inside a _ptsz or _ptds entry point, where stream 0 means this thread's own stream.
  bool per_thread = false;
  std::uint64_t calls = 0;
  ClockPace pace;
  unsigned capture_mode = 0;  // CUstreamCaptureMode, or another number that the program passed
  // Returns the last use of this thread's own stream (CU_STREAM_PER_THREAD) in a context. Other threads cannot name
  // this stream, but calls on the whole context wait for the stream's work.
  Object& own_stream(Context& context);

 private:
  std::deque<std::pair<const Context*, Object>> own_streams_;
};

// The calling thread's state, or null before its first call. Only for this_thread() and thread.cc.
//
// The initial-exec model saves a call of __tls_get_addr for each use, several per call of the program. A library that
// dlopen() loads takes the memory for this model from what glibc keeps free for all such libraries (1664 bytes by
// default). libcuda therefore has only a few pointers in thread-local memory, and a test limits them to 64 bytes
// (tests/unit/thread_local_size.cmake).
extern constinit thread_local Thread* current_thread [[gnu::tls_model("initial-exec")]];
Thread& start_thread();
// Returns the calling thread's state. The state is made at the thread's first call and ends with the thread.
inline Thread& this_thread() {
  Thread* const thread = current_thread;
  return thread != nullptr ? *thread : start_thread();
}
Channel& acquire_channel(Thread& thread);
// Returns the calling thread's channel, which the thread acquires at its first record. Preconditions: there is a
// session.
inline Channel& this_channel() {
  Thread& thread = this_thread();
  return thread.channel != nullptr ? *thread.channel : acquire_channel(thread);
}
// Returns the number of calls of all threads, ended threads included.
std::uint64_t calls_of_all_threads();

}  // namespace guest
