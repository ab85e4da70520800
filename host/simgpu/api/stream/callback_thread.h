// The process's only thread for functions of the program (callback.h). The thread runs one function at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>

#include "ring/base/mutex.h"

namespace simgpu {

class CallbackThread {
 public:
  // Runs the function on the callback thread and waits for its end. Calls by several threads run in order of arrival.
  void run(const std::function<void()>& function);

 private:
  struct Call {
    const std::function<void()>& function;
    bool done = false;
  };
  [[noreturn]] void serve();

  ring::Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> calls_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;
};

}  // namespace simgpu
