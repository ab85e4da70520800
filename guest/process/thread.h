// The state of one thread of the program: its channel, its stack of current contexts, and the variant of the entry
// point that it is in. Only the thread itself uses it, except `calls`.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

class Channel;
struct Context;

class Thread {
 public:
  Channel* channel = nullptr;
  std::vector<Context*> contexts;  // the last is current
  bool per_thread = false;         // inside a _ptsz or _ptds entry point: stream 0 means this thread's own
  std::uint64_t calls = 0;
  unsigned capture_mode = 0;  // CUstreamCaptureMode, or another number that the program passed
  // The last use of this thread's own stream (CU_STREAM_PER_THREAD) in a context. Other threads cannot name the stream,
  // but calls on the whole context wait for its work.
  Object& own_stream(Context& context);

 private:
  std::deque<std::pair<const Context*, Object>> own_streams_;
};

// The calling thread's state. Made at the thread's first call; ends with the thread.
Thread& this_thread();
// The calling thread's channel, acquired at its first record. Preconditions: there is a session.
Channel& this_channel();
// The number of calls of all threads, ended ones included.
std::uint64_t calls_of_all_threads();

}  // namespace guest
