// The lock of a guest's channel (guest/session/channel_mutex.h): one owner without locked instructions, and threads that
// come later. The bytes that the lock guards are checked for data races.
#include <compare>
#include <shared_mutex>

#include "tests/models/explored.h"

namespace std {
using explored_mutex = explore::Mutex;
using explored_shared_mutex = explore::Mutex;
}  // namespace std
#define mutex explored_mutex
#define shared_mutex explored_shared_mutex
// The product's headers, after explored.h:
#include "guest/session/channel_mutex.h"
#include "tests/models/scenarios.h"

void guest::process_fence() { explore::process_fence(); }
void guest::ChannelMutex::await_owner() { explore::pause(); }

namespace explore {
namespace {

struct Guarded {
  Guarded() {
    share(bytes, sizeof bytes);
    lock.reserve();
  }

  void owner() {
    for (int i = 0; i < 2; ++i) post();
  }
  // A thread that gets the channel although another thread has it.
  void second() {
    lock.share();
    post();
  }
  // Channels::stop_senders(): a free lock proves that no thread posts any more.
  void end() {
    over.store(true, std::memory_order_relaxed);
    lock.share();
    if (!lock.try_lock()) return;
    lock.unlock();
    writes(bytes, sizeof bytes);  // the slot's next process
  }
  void finish() {}

 private:
  void post() {
    const guest::ChannelLock held(lock);
    if (over.load(std::memory_order_relaxed)) return;
    writes(bytes, sizeof bytes);
  }

  guest::ChannelMutex lock;
  std::atomic<bool> over{false};
  std::byte bytes[16];
};

}  // namespace

std::vector<Scenario> channel_mutex_scenarios() {
  return {
      {"channel_mutex", "a second user",
       [](Options o) { return bounded<Guarded, &Guarded::owner, &Guarded::second>(o, 4); }},
      {"channel_mutex", "two more users",
       [](Options o) { return bounded<Guarded, &Guarded::owner, &Guarded::second, &Guarded::second>(o, 2); }},
      {"channel_mutex", "the end",
       [](Options o) { return bounded<Guarded, &Guarded::owner, &Guarded::second, &Guarded::end>(o, 2); }},
  };
}

}  // namespace explore
