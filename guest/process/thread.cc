#include "guest/process/thread.h"

#include <pthread.h>

#include <vector>

#include "guest/session/session.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

// The states of all threads. Never destroyed, since threads may outlive every destructor.
struct Registry {
  ring::Mutex mutex;
  std::vector<Thread*> alive GUARDED_BY(mutex);
  std::uint64_t calls_of_ended GUARDED_BY(mutex) = 0;
  pthread_key_t key;
};

void end_thread(void* thread);

Registry& registry() {
  static Registry* const r = [] {
    auto* fresh = new Registry;
    pthread_key_create(&fresh->key, end_thread);
    return fresh;
  }();
  return *r;
}

void end_thread(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  if (thread->channel != nullptr)
    if (Session* s = session()) s->channels().release(*thread->channel);
  Registry& r = registry();
  ring::MutexLock lock(r.mutex);
  r.calls_of_ended += thread->calls;
  std::erase(r.alive, thread);
  current_thread = nullptr;
  delete thread;
}

}  // namespace

constinit thread_local Thread* current_thread = nullptr;

Thread& start_thread() {
  Registry& r = registry();
  auto* const thread = new Thread;
  current_thread = thread;
  pthread_setspecific(r.key, thread);
  ring::MutexLock lock(r.mutex);
  r.alive.push_back(thread);
  return *thread;
}

Object& Thread::own_stream(Context& context) {
  for (auto& [of, stream] : own_streams_)
    if (of == &context) return stream;
  Object& stream = own_streams_.emplace_back().second;
  own_streams_.back().first = &context;
  stream.context = &context;
  return stream;
}

Channel& acquire_channel(Thread& thread) {
  thread.channel = &session()->channels().acquire();
  return *thread.channel;
}

std::uint64_t calls_of_all_threads() {
  Registry& r = registry();
  ring::MutexLock lock(r.mutex);
  std::uint64_t sum = r.calls_of_ended;
  for (const Thread* thread : r.alive) sum += thread->calls;
  return sum;
}

}  // namespace guest
