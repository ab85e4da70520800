// A Broker under the tests' oracle (tests/oracle.h): at its end, it and its workers must have ended as they should.
#pragma once

#include "tests/oracle.h"
#include "tests/unit/broker/harness.h"

namespace broker_test {

class WatchedBroker : public Broker {
 public:
  using Broker::Broker;
  ~WatchedBroker() {
    if (!ended() && terminate() != 0) {
      ADD_FAILURE() << "ivgpud did not end in order";
      return;
    }
    if (const std::string words = workers_.last_complaint(last_status()); !words.empty()) ADD_FAILURE() << words;
  }

  // kill -9 on purpose.
  void kill_worker(pid_t worker) { workers_.kill(worker); }

 private:
  oracle::Workers workers_;
};

}  // namespace broker_test
