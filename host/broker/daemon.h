// Serves all VMs of a configuration: owns the event loop and the parts of ivgpud, and decides when it ends. SIGTERM and
// SIGINT end it, and SIGHUP makes it reload its file (config_reload.h). If sessions are kept, SIGTERM leaves them to the
// next broker and SIGINT ends them (broker_succession.h). One thread, one event loop; the destructor ends everything.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/process/signal_watch.h"
#include "host/base/result.h"
#include "host/broker/alloc/gpu_accounts.h"
#include "host/broker/alloc/gputime_helper.h"
#include "host/broker/broker_succession.h"
#include "host/broker/config/config.h"
#include "host/broker/config_reload.h"
#include "host/broker/ops/answer_server.h"
#include "host/broker/ops/operator_sockets.h"
#include "host/broker/ops/reload_report.h"
#include "host/broker/ops/status.h"
#include "host/broker/vms/served_vms.h"
#include "host/broker/vms/vm_services.h"
#include "host/broker/worker/worker_program.h"

namespace host::broker {

class Daemon {
 public:
  // `file` is read again on SIGHUP; the defaults are those of a machine with `cores` processors.
  Daemon(std::string file, unsigned cores)
      : reload_(std::move(file), cores, {broker_, services_, vms_, sockets_, succession_.manager(), report_}) {}

  // The caller sets who measures GPU memory, and who reports GPU facts, before start().
  VmServices& services() { return services_; }
  EventLoop& loop() { return loop_; }

  // The error is one sentence. `gpus` has an entry per VM. A VM that cannot be served does not stop
  // the others: the log has the reason, and a reload retries. start() fails if the broker's file has VMs and none can
  // be served.
  Result<void> start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus);
  std::size_t served() const { return vms_.size(); }

  // Calls `ready` once every VM has its first worker, so that a program started then need not wait for a driver.
  void when_warm(const std::function<void()>& ready) { vms_.when_warm(ready); }

  const char* waiter() const { return loop_.waiter_name(); }
  BrokerStatus status() const;

  // Runs until a signal, or until all holders of the other end of `stay_fd` have closed it.
  void run(int stay_fd);
  // True if run() returned so that the next broker can take over. The process must then exit without destroying this
  // object, which would end the sessions.
  bool leaves() const { return leaving_all_; }

 private:
  void on_control(std::string_view line, AnswerServer::Answer answer);
  std::string end_sessions(std::string_view line);
  Result<void> watch_signals();
  void on_signal(int number);
  void stop(const char* why);
  void leave();

  BrokerOptions broker_;  // the values in effect
  EventLoop loop_;
  BrokerSuccession succession_{loop_};
  VmServices services_{loop_};  // before the VMs, which use it
  ReloadReport report_;
  ServedVms vms_{loop_, services_, report_, [this] { reload_.go_on(); }};
  std::unique_ptr<GpuTimeHelper> gputime_;  // after the VMs: its start resumes their workers
  // After the VMs, which it queries.
  OperatorSockets sockets_{
      loop_,
      services_.traces(),
      {[this] { return status(); }, [this](std::string_view line, auto answer) { on_control(line, answer); }}};
  ConfigReload reload_;
  const Clock::time_point started_ = Clock::now();
  SignalWatch signals_{loop_};
  bool stopping_ = false, leaving_all_ = false;
};

}  // namespace host::broker
