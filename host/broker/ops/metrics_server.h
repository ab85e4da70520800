// Serves GET /metrics to Prometheus and compatible readers: one HTTP/1 request per connection, on a Unix socket or a
// loopback address.
//
// Trust: on a loopback address any user of this machine may connect. A request is parsed as hostile, and only its first
// line is used; host/broker/ops/answer_server.h bounds the rest. The page is made a few times a second at most,
// whatever the number of requests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "host/base/result.h"
#include "host/broker/ops/answer_server.h"

namespace host::broker {

// The protocol of HTTP requests: all lines up to the empty one.
Protocol http_protocol();
// The complete answer to a request; calls `page` if the request is for the metrics.
std::string http_answer(std::string_view request, const std::function<std::string()>& page);

class MetricsServer {
 public:
  // The error is one sentence.
  static Result<std::unique_ptr<MetricsServer>> listen(EventLoop& loop, const AnswerServer::Address& address,
                                                       std::function<std::string()> page);

 private:
  explicit MetricsServer(std::function<std::string()> page) : make_(std::move(page)) {}
  std::string page();

  const std::function<std::string()> make_;
  std::string made_;
  Clock::time_point made_at_{};
  std::unique_ptr<AnswerServer> server_;
};

}  // namespace host::broker
