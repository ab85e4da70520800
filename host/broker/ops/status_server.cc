#include "host/broker/ops/status_server.h"

#include <utility>

namespace host::broker {

Result<std::unique_ptr<StatusServer>> StatusServer::listen(EventLoop& loop, const ListenerOptions& socket,
                                                           std::function<std::string()> report) {
  std::unique_ptr<StatusServer> server(new StatusServer(loop, std::move(report)));
  const auto asked = [self = server.get()](std::string_view, AnswerServer::Answer answer) {
    self->waiting_.push_back(answer);
    if (self->timer_ == 0) self->answer_all();
  };
  auto answers = AnswerServer::listen(loop, socket, {}, asked);
  if (!answers) return answers.error();
  server->server_ = *std::move(answers);
  return server;
}

void StatusServer::answer_all() {
  if (const Span wait = pace_.take(Clock::now()); wait > Span::zero()) {
    timer_ = loop_.after(wait, [this] {
      timer_ = 0;
      answer_all();
    });
    return;
  }
  const std::string text = report_();
  for (const AnswerServer::Answer& answer : std::exchange(waiting_, {})) {
    answer.reply(text);
    answer.end();
  }
}

}  // namespace host::broker
