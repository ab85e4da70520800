// Provides the scheduler's Switcher. For NVIDIA's driver it is the process ivgpu-gputime, which is restarted when it
// ends or stops answering. For the simulated GPU it is a file; for other drivers there is none.
//
// Threads: the broker's event loop only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/process/helper.h"
#include "host/broker/gpu/gpus.h"
#include "host/scheduler/scheduler.h"

namespace host::broker {

class GpuTimeHelper {
 public:
  struct Options {
    std::string program;  // the path of ivgpu-gputime
    std::string library;  // the driver, as the key `library` names it
    std::vector<Gpu> gpus;
    std::chrono::milliseconds longest_silence{1000};
  };

  GpuTimeHelper(EventLoop& loop, scheduler::Scheduler& scheduler, Options options);
  ~GpuTimeHelper();
  GpuTimeHelper(const GpuTimeHelper&) = delete;
  GpuTimeHelper& operator=(const GpuTimeHelper&) = delete;

  // Why GPU time cannot be switched now; "" if it can.
  const std::string& missing() const { return missing_; }

 private:
  static constexpr auto before_restart = std::chrono::seconds(1);

  void start();
  void start_helper();
  void hear();
  void lose(const std::string& why);

  EventLoop& loop_;
  scheduler::Scheduler& scheduler_;
  const Options options_;
  std::vector<Gpu> named_;  // the GPUs that the helper was started with
  std::unique_ptr<Helper> helper_;
  Fd socket_;
  EventLoop::Id hello_ = 0, lost_ = 0, timer_ = 0;
  std::string missing_, reported_;
};

}  // namespace host::broker
