#include "host/broker/ops/metrics_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

constexpr std::size_t longest_request = 8192;  // Prometheus sends some three hundred bytes
constexpr auto fresh = std::chrono::milliseconds(200);

constexpr const char* text_type = "text/plain; charset=utf-8";
constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

std::string response(const char* status, const char* type, const std::string& body, const char* more = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}", status,
                     type, body.size(), more, body);
}

std::string not_understood() { return response("400 Bad Request", text_type, "this is no request of HTTP/1\n"); }

// Length of the request without its final empty line. Lines may end without a carriage return.
std::size_t length_of_head(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (rest.starts_with('\n') || rest.starts_with("\r\n")) return at;
  }
  return std::string_view::npos;
}

struct RequestLine {
  std::string_view method, target, version;

  explicit RequestLine(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t first = line.find(' '), last = line.rfind(' ');
    if (first == last) return;  // no space, or only one
    method = line.substr(0, first);
    target = line.substr(first + 1, last - first - 1);
    version = line.substr(last + 1);
  }
  bool makes_sense() const {
    const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto visible = [](char c) { return c > ' ' && c <= '~'; };
    return !method.empty() && std::all_of(method.begin(), method.end(), upper) && !target.empty() &&
           std::all_of(target.begin(), target.end(), visible) && (version == "HTTP/1.1" || version == "HTTP/1.0");
  }
};

}  // namespace

Protocol http_protocol() { return {longest_request, length_of_head, not_understood()}; }

std::string http_answer(std::string_view request, const std::function<std::string()>& page) {
  const RequestLine line(request.substr(0, request.find('\n')));
  if (!line.makes_sense()) return not_understood();
  if (line.target.substr(0, line.target.find('?')) != "/metrics")
    return response("404 Not Found", text_type, "there is /metrics, and nothing else\n");
  if (line.method != "GET")
    return response("405 Method Not Allowed", text_type, "/metrics takes GET, and nothing else\n", "Allow: GET\r\n");
  return response("200 OK", metrics_type, page());
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(EventLoop& loop, const AnswerServer::Address& address,
                                                             std::function<std::string()> page) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(page)));
  const auto asked = [self = server.get()](std::string_view request, AnswerServer::Answer answer) {
    answer.reply(http_answer(request, [self] { return self->page(); }));
    answer.end();
  };
  auto answers = AnswerServer::listen(loop, address, http_protocol(), asked);
  if (!answers) return answers.error();
  server->server_ = *std::move(answers);
  return server;
}

std::string MetricsServer::page() {
  const Clock::time_point now = Clock::now();
  if (made_.empty() || now - made_at_ >= fresh) {
    made_ = make_();
    made_at_ = now;
  }
  return made_;
}

}  // namespace host::broker
