// The changes of a reload, one line each, for the log and for clients of `ivgpu reload`
// (host/broker/ops/control_protocol.h).
#pragma once

#include <string>
#include <vector>

#include "host/broker/ops/answer_server.h"

namespace host::broker {

class ReloadReport {
 public:
  // `asker` waits for the next reload.
  void add(AnswerServer::Answer asker) { next_.push_back(asker); }
  void begin();
  void info(const std::string& line);
  void error(const std::string& line);
  void finish();
  // Forgets the askers, because their server is being destroyed.
  void forget_askers();

 private:
  void reply(const char* kind, const std::string& line);

  std::vector<AnswerServer::Answer> askers_, next_;
  std::size_t lines_ = 0;
};

}  // namespace host::broker
