// The tests' oracle: a worker that ended by a signal which the test has not sent (a fault, an assertion, a sanitizer's
// abort), or with a code that nobody asked for (a sanitizer's own), fails the test. The broker tells it, by its status
// while it runs and by `ivgpud --last-status-fd` when it has ended: workers are its children and not the test's.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace oracle {

// The workers of one broker, from its start to its end.
class Workers {
 public:
  // SIGKILL by the test. The worker may have ended otherwise before, or may be ended by the broker just then: so what
  // is told later must be the test's doing, but need not be there.
  void kill(pid_t worker) {
    killed_.insert(worker);
    ::kill(worker, SIGKILL);
  }

  // A sentence about the first worker that has failed since the last question and that the test has not killed; else
  // "". `status`: the broker's document.
  std::string complaint(const nlohmann::json& status) {
    if (!status.is_object()) return "the broker tells no status";
    for (const auto& vm : status.at("vms"))
      if (std::string words = complaint_of_vm(vm); !words.empty()) return words;
    return {};
  }
  // The same of what the broker has written as its last.
  std::string last_complaint(const std::string& document) {
    return complaint(nlohmann::json::parse(document, nullptr, false));
  }
  // Ends the broker, a child of the caller's, and asks for the last time; `read_last` gives what it has written as its
  // last by then. Also complains of an end that is not in order.
  template <class ReadLast>
  std::string end_broker(pid_t broker, const ReadLast& read_last) {
    int status = 0;
    ::kill(broker, SIGTERM);
    if (waitpid(broker, &status, 0) != broker || status != 0)
      return "ivgpud did not end in order: wait status " + std::to_string(status);
    return last_complaint(read_last());
  }

 private:
  std::string complaint_of_vm(const nlohmann::json& vm) {
    const std::string name = vm.at("name");
    const auto& ends = vm.at("worker_ends");
    const auto& told = ends.at("failures");
    const auto count = ends.at("signal").get<std::size_t>() + ends.at("other_code").get<std::size_t>();
    const std::size_t fresh = count - seen_[name];
    seen_[name] = count;
    if (fresh > told.size()) return "VM " + name + ": " + std::to_string(fresh) + " workers failed, not all are named";
    for (std::size_t i = told.size() - fresh; i < told.size(); ++i)
      if (!by_the_test(told[i]))
        return "VM " + name + ": worker " + std::to_string(told[i].at("worker").get<pid_t>()) + " " +
               told[i].at("how").get<std::string>() + "; the last: " + ends.at("last_reason").get<std::string>();
    return {};
  }

  bool by_the_test(const nlohmann::json& failure) const {
    return failure.value("signal_number", 0) == SIGKILL && killed_.count(failure.at("worker").get<pid_t>()) != 0;
  }

  std::set<pid_t> killed_;
  std::map<std::string, std::size_t> seen_;  // failures of each VM that were looked at
};

}  // namespace oracle
