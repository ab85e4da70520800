// The tests' oracle: a worker fails the test if it ends by a signal that neither the test nor the broker sent, or with
// an unexpected exit code, such as a sanitizer's. Workers are the broker's children, so the oracle reads the broker's
// status while the broker runs, and the output of `ivgpud --last-status-fd` after its end.
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

// The workers of one broker, during the broker's whole life.
class Workers {
 public:
  // Kills a worker with SIGKILL. The worker may already have ended, or the broker may end it at the same time. A later
  // report of the kill is therefore allowed, but not required.
  void kill(pid_t worker) {
    killed_.insert(worker);
    ::kill(worker, SIGKILL);
  }

  // Describes the first worker that has failed since the last call and was not killed by the test; else "". `status`:
  // the broker's status document.
  std::string complaint(const nlohmann::json& status) {
    if (!status.is_object()) return "the broker tells no status";
    for (const auto& vm : status.at("vms"))
      if (std::string words = complaint_of_vm(vm); !words.empty()) return words;
    return {};
  }
  // Same as complaint(), for the broker's last status.
  std::string last_complaint(const std::string& document) {
    return complaint(nlohmann::json::parse(document, nullptr, false));
  }
  // Ends the broker, a child of the caller, and checks a last time; `read_last` then returns the broker's last status.
  // Also complains if the broker did not exit with code 0.
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
  std::map<std::string, std::size_t> seen_;  // failures per VM that were already examined
};

}  // namespace oracle
