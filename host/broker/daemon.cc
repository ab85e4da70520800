#include "host/broker/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "host/broker/config/drop_ins.h"
#include "host/broker/ops/control_protocol.h"

namespace host::broker {

Result<void> Daemon::start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus) {
  broker_ = config.broker;
  if (const auto prepared = succession_.prepare(broker_); !prepared) return prepared.error();
  WorkerProgram kept = program;
  kept.store = succession_.store();
  kept.life_fd = succession_.life_fd();
  kept.outlive_ms = succession_.outlive_ms();
  if (const auto started = services_.start(config, kept, gpus, succession_.manager().is_there()); !started)
    return started.error();
  std::vector<std::string> failures;
  Error last;
  for (std::size_t i = 0; i < config.vms.size(); ++i)
    if (const auto added = vms_.add(config.vms[i], gpus[i], broker_); !added) {
      last = added.error();
      failures.push_back(not_served(config.vms[i].name, last.message));
    }
  const auto& vms = config.vms;
  const bool own = std::any_of(vms.begin(), vms.end(), [](const VmOptions& vm) { return vm.file.empty(); });
  if (vms_.size() == 0 && (own || !config.may_be_empty))
    return failures.size() > 1 ? Error{fmt::format("{}", fmt::join(failures, "; "))} : last;
  if (const auto opened = sockets_.open(broker_, succession_.store()); !opened) return opened.error();
  if (const auto watched = watch_signals(); !watched) return watched.error();
  gputime_ = services_.start_gpu_time();
  vms_.watch_losses();
  succession_.forget_left();
  services_.report_groups();
  for (const std::string& failure : failures) spdlog::error("{}", failure);
  for (const RefusedFile& file : config.refused) spdlog::error("{}", in_words(file, false));
  for (const std::string& remark : config.remarks) spdlog::warn("{}", remark);
  return {};
}

BrokerStatus Daemon::status() const {
  BrokerStatus status{IVGPU_VERSION, services_.library(), Clock::now() - started_, loop_.iterations(), {}};
  vms_.add_to(status);
  status.gpu_time_missing = gputime_ != nullptr ? gputime_->missing() : "";
  return status;
}

void Daemon::run(int stay_fd) {
  if (stay_fd >= 0) signals_.watch_pipe(stay_fd, [this] { stop("who started it has ended"); });
  succession_.manager().ready(vms_.in_words());
  loop_.run();
}

void Daemon::on_control(std::string_view line, AnswerServer::Answer answer) {
  if (line == reload_request) return reload_.start_for(answer);
  answer.reply(end_sessions(line) + "\n");
  answer.end();
}

// Returns the answer to `ivgpu end`.
std::string Daemon::end_sessions(std::string_view line) {
  const auto request = parse_end(line);
  if (!request) return "error a VM's name is expected, or a name and a session as in VM/3";
  Vm* const vm = vms_.find(request->vm);
  if (vm == nullptr)
    return fmt::format("error there is no VM {}; `ivgpu status` shows those that are served", request->vm);
  const std::size_t ended = vm->end_sessions(request->slot);
  if (request->slot && ended == 0)
    return fmt::format("error VM {} has no session {}; `ivgpu status` shows those that it has", request->vm,
                       *request->slot);
  spdlog::info("{}: `ivgpu end` ends {} session(s)", request->vm, ended);
  return fmt::format("ok {}", ended);
}

Result<void> Daemon::watch_signals() {
  return signals_.watch({SIGTERM, SIGINT, SIGHUP}, [this](int number) { on_signal(number); });
}

void Daemon::on_signal(int number) {
  if (number == SIGTERM && succession_.is_prepared()) return leave();
  if (number != SIGHUP) return stop("asked to end");
  if (!stopping_) reload_.start("SIGHUP");
}

void Daemon::stop(const char* why) {
  if (stopping_) return;
  stopping_ = true;
  spdlog::info("ending: {}", why);
  succession_.manager().stopping();
  report_.forget_askers();
  sockets_.close();
  // When the last worker has gone, MPS has no clients left.
  vms_.stop([this] { services_.end([this] { loop_.stop(); }); });
}

// Cleans up as little as a kill would, so that the next broker starts alike after both. Ends only what the next broker
// cannot take over.
void Daemon::leave() {
  if (stopping_) return;
  stopping_ = leaving_all_ = true;
  spdlog::info("ending: asked to end; {} session(s) go on for {} s without ivgpud", vms_.sessions(), broker_.outlive_s);
  succession_.manager().stopping();
  vms_.leave();
  services_.leave();
  succession_.manager().finish();
  loop_.stop();
}

}  // namespace host::broker
