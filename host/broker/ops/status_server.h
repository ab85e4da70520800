// The socket of `ivgpu status` and `ivgpu top`: a client connects, sends nothing, and gets a report.
//
// Trust: the socket's permissions decide who may connect. A report costs the loop more than a connection costs a
// client, so the rate of reports is limited. Clients over the limit wait, and the next report answers all of them: a
// report is never older than its client's connection. host/broker/ops/answer_server.h bounds the number of clients.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/rate.h"
#include "host/base/result.h"
#include "host/broker/ops/answer_server.h"

namespace host::broker {

class StatusServer {
 public:
  // An operator makes a handful of requests at once; scripts that wait for a change make more.
  static constexpr double reports_per_second = 20, report_burst = 20;

  // The error is one sentence.
  static Result<std::unique_ptr<StatusServer>> listen(EventLoop& loop, const ListenerOptions& socket,
                                                      std::function<std::string()> report);
  ~StatusServer() { loop_.forget(timer_); }
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  StatusServer(EventLoop& loop, std::function<std::string()> report) : loop_(loop), report_(std::move(report)) {}
  void answer_all();

  EventLoop& loop_;
  const std::function<std::string()> report_;
  TokenBucket pace_{reports_per_second, report_burst, Clock::now()};
  std::vector<AnswerServer::Answer> waiting_;
  EventLoop::Id timer_ = 0;  // until the next report is allowed
  std::unique_ptr<AnswerServer> server_;
};

}  // namespace host::broker
