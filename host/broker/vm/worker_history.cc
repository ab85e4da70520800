#include "host/broker/vm/worker_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace host::broker {

std::string end_in_words(const WorkerProcess::Exit& exit) {
  return exit.how + (exit.last_words.empty() ? "" : ": " + exit.last_words);
}

void WorkerHistory::add(Counters last) {
  last.device_memory = 0;
  counters_ += last;
}

void WorkerHistory::add_end(std::uint32_t k, const WorkerProcess::Exit& exit) {
  using End = WorkerProcess::End;
  switch (exit.end) {
    case End::Orderly: ++ends_.orderly; return;
    case End::ProtocolBroken: ++ends_.protocol_broken; break;
    case End::KilledByBroker: ++ends_.killed_by_broker; break;
    case End::Signal: ++ends_.signal; break;
    case End::OtherCode: ++ends_.other_code; break;
  }
  ends_.last_reason = fmt::format("slot {}: the worker {}", k, end_in_words(exit));
  if (exit.end == End::Signal || exit.end == End::OtherCode) add_failure(k, exit);
  if (exit.end != End::Signal) return;
  ends_.last_signal = ends_.last_reason;
  // A VM that goes on logs the end with its effect on the slot.
  if (context_.stopping) spdlog::warn("{}: {}", context_.options.name, ends_.last_reason);
}

void WorkerHistory::add_failure(std::uint32_t k, const WorkerProcess::Exit& exit) {
  if (ends_.failures.size() == WorkerEnds::most_failures) ends_.failures.pop_front();
  ends_.failures.push_back({exit.worker, k, exit.end == WorkerProcess::End::Signal, exit.number, exit.how});
}

void WorkerHistory::report_jail(const WorkerJail& jail) {
  if (jail == jail_reported_) return;
  jail_reported_ = jail;
  const std::string active = fmt::format("{}", fmt::join(names_of_layers(jail.layers), ", "));
  if (jail.missing.empty()) {
    spdlog::info("{}: the workers' jail is complete: {}", context_.options.name, active);
  } else {
    spdlog::warn("{}: the workers' jail is incomplete: {}; what holds: {}", context_.options.name, jail.missing,
                 active.empty() ? "nothing" : active);
  }
}

}  // namespace host::broker
