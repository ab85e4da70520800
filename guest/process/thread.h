// What belongs to a thread of the program: its channel, its stack of current contexts, and which entry point it is in.
#pragma once

#include <cstdint>
#include <vector>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

class Channel;
struct Context;

struct Thread {
  Channel* channel = nullptr;
  std::vector<Context*> contexts;  // the last is current
  bool per_thread = false;         // inside a _ptsz or _ptds entry point: stream 0 means this thread's own
  std::uint64_t calls = 0;
  // What is remembered of this thread's own stream. Other threads cannot name it, but context-wide calls wait for its
  // work.
  Object own_stream;
};

// The calling thread's; made at its first call, ended with the thread.
Thread& this_thread();
// Its channel, opened at its first record. Preconditions: there is a session.
Channel& this_channel();
// Calls counted over all threads, ended ones included.
std::uint64_t calls_of_all_threads();

}  // namespace guest
