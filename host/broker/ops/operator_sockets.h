// Owns the sockets by which operators reach the broker: status, control and metrics; and opens the trace server's. It
// knows no VM: its owner makes the answers. Only the thread of the event loop uses it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/process/fd_store.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/ops/answer_server.h"
#include "host/broker/ops/metrics_server.h"
#include "host/broker/ops/status.h"
#include "host/broker/ops/status_server.h"
#include "host/broker/ops/trace_server.h"

namespace host::broker {

class OperatorSockets {
 public:
  struct Answers {
    std::function<BrokerStatus()> status;
    AnswerServer::Asked control;  // answers a line of `ivgpu end` or `ivgpu reload`
  };

  // `traces` is the server of `ivgpu trace`, which outlives this object.
  OperatorSockets(EventLoop& loop, TraceServer& traces, Answers answers)
      : loop_(loop), traces_(traces), answers_(std::move(answers)) {}

  // Opens all sockets. `store`: keeps them for the next broker; null: not kept. The error is one sentence.
  Result<void> open(const BrokerOptions& broker, FdStore* store);
  // Opens the metrics socket at the address of the key `metrics`, in place of an earlier one. Precondition: open() was
  // called. After an error, one sentence, there are no metrics.
  Result<void> open_metrics(const BrokerOptions& broker);
  // Closes all sockets except the traces, which end with their workers.
  void close();

 private:
  Result<void> open_status(const BrokerOptions& broker);
  Result<void> open_traces(const BrokerOptions& broker);
  Result<void> open_control(const BrokerOptions& broker);

  EventLoop& loop_;
  TraceServer& traces_;
  const Answers answers_;
  FdStore* store_ = nullptr;
  std::unique_ptr<StatusServer> status_;
  std::unique_ptr<AnswerServer> control_;
  std::unique_ptr<MetricsServer> metrics_;
};

}  // namespace host::broker
