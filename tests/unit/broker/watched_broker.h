// A Broker whose workers the tests' oracle watches (tests/oracle.h). The oracle fails the test if a worker ends
// unexpectedly.
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

  // Kills a worker with kill -9. The oracle expects this end.
  void kill_worker(pid_t worker) { workers_.kill(worker); }

 private:
  oracle::Workers workers_;
};

}  // namespace broker_test
