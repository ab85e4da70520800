#include "guest/objects/copy/copiers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "guest/base/uncancelled.h"
#include "guest/objects/copy/streaming_copy.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

constexpr unsigned most_threads = 16;

unsigned usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

unsigned wanted_threads() {
  if (!switches().copy_threads) return 0;
  const unsigned usual = std::min(usable_processors() / 4, 3u);
  const char* given = std::getenv("IVGPU_COPY_THREADS");
  if (given == nullptr || *given == '\0') return usual;
  char* end = nullptr;
  const unsigned long number = std::strtoul(given, &end, 10);
  if (*end == '\0' && number <= most_threads) return static_cast<unsigned>(number);
  log(Level::Warn, "IVGPU_COPY_THREADS=%s is no number from 0 to %u; %u are used", given, most_threads, usual);
  return usual;
}

}  // namespace

Copiers::~Copiers() {
  ring::UniqueLock lock(mutex_);
  ending_ = true;
  queued_.notify_all();
  done_.wait(lock.native(), [this]() REQUIRES(mutex_) { return running_ == 0; });
}

// Adds a thread. The thread takes no signals, because the program's signal handlers expect threads of the program. If
// no thread can be made, the existing threads do its work.
void Copiers::add_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, this) == 0) {
    pthread_detach(thread);
    ++running_;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Copiers::run(void* self) {
  static_cast<Copiers*>(self)->work();
  return nullptr;
}

void Copiers::work() {
  ring::UniqueLock lock(mutex_);
  while (!ending_) {
    if (first_ == nullptr)
      queued_.wait(lock.native());
    else
      run_first();
  }
  --running_;
  done_.notify_all();  // notifies under the lock, because the destructor waits for the notification
}

void Copiers::run_first() {
  Job& job = *first_;
  first_ = job.next_;
  if (first_ == nullptr) last_ = nullptr;
  job.state_ = Job::State::Running;
  {
    const ring::MutexUnlock unlocked(mutex_);
    copy_bytes(job.to_, job.from_, job.bytes_, job.streamed_);
  }
  job.state_ = Job::State::Done;
  if (job.awaited_) done_.notify_all();
}

void Copiers::start(Job& job, void* to, const void* from, std::size_t bytes, bool streamed) {
  ring::UniqueLock lock(mutex_);
  while (running_ < wanted_) {
    const unsigned before = running_;
    add_thread();
    if (running_ == before) break;
  }
  job.to_ = to, job.from_ = from, job.bytes_ = bytes, job.streamed_ = streamed, job.awaited_ = false;
  job.state_ = Job::State::Queued;
  job.next_ = nullptr;
  (last_ == nullptr ? first_ : last_->next_) = &job;
  last_ = &job;
  lock.unlock();  // unlocks first, so that the woken thread finds the mutex unlocked
  queued_.notify_one();
}

void Copiers::finish(Job& job) {
  const Uncancelled here;
  ring::UniqueLock lock(mutex_);
  while (job.state_ == Job::State::Queued || job.state_ == Job::State::Running) {
    if (first_ != nullptr) {
      run_first();
    } else {
      job.awaited_ = true;
      done_.wait(lock.native());
    }
  }
  job.state_ = Job::State::None;
}

Copiers& copiers() {
  // Never destroyed, because the threads run until the process ends.
  static Copiers* const all = new Copiers(wanted_threads());
  return *all;
}

}  // namespace guest
