#include "host/broker/mps/mps_left.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>

#include "host/base/process/pidfd.h"

namespace host::broker {
namespace {

// The time that a worker has to exit when asked.
constexpr auto before_it_is_killed = std::chrono::seconds(2);

// 0: the process has ended, or the descriptor is no pidfd.
pid_t process_of(const Fd& pidfd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  constexpr std::string_view key = "Pid:\t";
  pid_t process = 0;
  for (std::string line; std::getline(info, line);)
    if (line.starts_with(key)) std::from_chars(line.data() + key.size(), line.data() + line.size(), process);
  return process > 1 ? process : 0;
}

}  // namespace

void MpsLeft::end(Fd process) {
  const std::uint64_t number = ++next_;
  Worker& worker = workers_[number];
  worker.process = std::move(process);
  worker.exit_watch = loop_.watch(worker.process.get(), POLLIN, [this, number](short) { drop(number); });
  worker.timer = loop_.after(before_it_is_killed, [this, number] {
    workers_.at(number).timer = 0;
    let_go(number);
  });
}

void MpsLeft::let_go(std::uint64_t number) {
  const pid_t process = process_of(workers_.at(number).process);
  spdlog::warn("worker {} of before the restart is killed: it did not end when asked to", process);
  let_go_(process, [this, number] {
    if (const auto worker = workers_.find(number); worker != workers_.end())
      send_signal(worker->second.process.get(), SIGKILL);
  });
}

void MpsLeft::drop(std::uint64_t number) {
  Worker& worker = workers_.at(number);
  loop_.forget(worker.exit_watch);
  loop_.forget(worker.timer);
  workers_.erase(number);
}

void MpsLeft::kill_all() {
  while (!workers_.empty()) {
    send_signal(workers_.begin()->second.process.get(), SIGKILL);
    drop(workers_.begin()->first);
  }
}

}  // namespace host::broker
