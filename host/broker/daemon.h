// What serves all VMs of a configuration: their regions and sockets, the broker's own sockets, and the signals that end
// it. One thread, one event loop; everything of it ends with this object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/broker/config.h"
#include "host/broker/event_loop.h"
#include "host/broker/fd.h"
#include "host/broker/status.h"
#include "host/broker/status_server.h"
#include "host/broker/trace_server.h"
#include "host/broker/vm.h"
#include "host/broker/wiper.h"
#include "host/broker/worker_program.h"

namespace host::broker {

class Daemon {
 public:
  // False on failure, and `error` is one sentence. `gpus`: of each VM.
  bool start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus, std::string& error);

  // `ready` is called once every VM has its first worker, so that a program started then need not wait for a driver.
  void when_warm(const std::function<void()>& ready);

  const char* waiter() const { return loop_.waiter_name(); }
  BrokerStatus status(const std::string& library) const;

  // Until a signal, or until nobody holds the other end of `stay_fd` any more.
  void run(int stay_fd);

 private:
  bool make_groups(const BrokerOptions& broker, std::string& error);
  void tell_groups() const;
  bool open_status(const BrokerOptions& broker, const WorkerProgram& program, std::string& error);
  bool open_traces(const BrokerOptions& broker, std::string& error);
  bool watch_signals(std::string& error);
  void on_stay(int fd);
  void stop(const char* why);

  EventLoop loop_;
  std::unique_ptr<Groups> groups_;  // before the VMs, whose groups lie in it
  TraceServer traces_{loop_};       // before the VMs: they tell it of their workers
  WipeQueue wipes_{loop_};          // and their slots are wiped by this
  std::vector<std::unique_ptr<Vm>> vms_;
  std::unique_ptr<StatusServer> status_;  // after the VMs: it asks them
  const Clock::time_point started_ = Clock::now();
  Fd signals_;
  EventLoop::Id signal_watch_ = 0, stay_watch_ = 0;
  std::size_t running_ = 0, cold_ = 0;
  bool stopping_ = false;
};

}  // namespace host::broker
