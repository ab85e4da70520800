// The thread starts at the first call and, like the driver, never ends.
#include "host/simgpu/api/stream/callback_thread.h"

#include <thread>

#include "ring/base/mutex.h"

namespace simgpu {

void CallbackThread::run(const std::function<void()>& function) {
  Call call{function};
  ring::UniqueLock lock(mutex_);
  if (!started_) std::thread([this] { serve(); }).detach();
  started_ = true;
  calls_.push_back(&call);
  changed_.notify_all();
  changed_.wait(lock.native(), [&] { return call.done; });
}

void CallbackThread::serve() {
  ring::UniqueLock lock(mutex_);
  for (;;) {
    changed_.wait(lock.native(), [this]() REQUIRES(mutex_) { return !calls_.empty(); });
    Call& call = *calls_.front();
    calls_.pop_front();
    lock.unlock();
    call.function();
    lock.lock();
    call.done = true;
    changed_.notify_all();
  }
}

}  // namespace simgpu
