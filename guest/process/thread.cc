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

thread_local Thread* current = nullptr;

void end_thread(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  if (thread->channel != nullptr)
    if (Session* s = session()) s->channels().release(*thread->channel);
  Registry& r = registry();
  ring::MutexLock lock(r.mutex);
  r.calls_of_ended += thread->calls;
  std::erase(r.alive, thread);
  current = nullptr;
  delete thread;
}

Thread& start_thread() {
  Registry& r = registry();
  current = new Thread;
  pthread_setspecific(r.key, current);
  ring::MutexLock lock(r.mutex);
  r.alive.push_back(current);
  return *current;
}

}  // namespace

Object& Thread::own_stream(Context& context) {
  for (auto& [of, stream] : own_streams_)
    if (of == &context) return stream;
  Object& stream = own_streams_.emplace_back().second;
  own_streams_.back().first = &context;
  stream.context = &context;
  return stream;
}

Thread& this_thread() { return current != nullptr ? *current : start_thread(); }

Channel& this_channel() {
  Thread& thread = this_thread();
  if (thread.channel == nullptr) thread.channel = &session()->channels().acquire();
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
