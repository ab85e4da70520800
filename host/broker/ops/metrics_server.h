// GET /metrics, for Prometheus and whoever reads its format: a socket, or an address of the loopback, that answers one
// request of HTTP/1 for each connection.
//
// Trust: at an address of the loopback a client may be any user of this machine. A request is read as hostile, and its
// first line alone counts; host/broker/ops/answer_server.h bounds the rest. However often it is asked, the page is made a few
// times a second at most.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "host/broker/ops/answer_server.h"

namespace host::broker {

// Of HTTP requests: all lines up to the empty one.
Protocol http_protocol();
// The whole answer to a request; `page` is asked for where it is one for the metrics.
std::string http_answer(std::string_view request, const std::function<std::string()>& page);

class MetricsServer {
 public:
  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<MetricsServer> listen(EventLoop& loop, const AnswerServer::Address& address,
                                               std::function<std::string()> page, std::string& error);

 private:
  explicit MetricsServer(std::function<std::string()> page) : make_(std::move(page)) {}
  std::string page();

  const std::function<std::string()> make_;
  std::string made_;
  Clock::time_point made_at_{};
  std::unique_ptr<AnswerServer> server_;
};

}  // namespace host::broker
