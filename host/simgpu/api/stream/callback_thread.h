// The process's only thread for the program's functions (callback.h), which runs them one at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace simgpu {

class CallbackThread {
 public:
  // Returns when the function has returned. Runs calls of several threads in order.
  void run(const std::function<void()>& function);

 private:
  struct Call {
    const std::function<void()>& function;
    bool done = false;
  };
  [[noreturn]] void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call*> calls_;
  bool started_ = false;
};

}  // namespace simgpu
