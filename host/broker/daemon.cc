#include "host/broker/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "host/broker/ops/control_protocol.h"
#include "host/broker/region/guarded_memory.h"
#include "host/broker/region/plain_file_space.h"

namespace host::broker {
namespace {

// Logs the choice of GPUs, which the operator may not expect.
void report_gpus(const std::string& vm, const VmGpus& gpus) {
  if (gpus.all) return;
  std::string list;
  for (const Gpu& gpu : gpus.list) list += (list.empty() ? "" : ", ") + in_words(gpu);
  spdlog::info("{}: its guests see {}{}", vm, list,
               gpus.placement.empty() ? "" : fmt::format(", by placement = \"{}\"", gpus.placement));
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr)
    spdlog::info("{}: the key gpus goes before CUDA_VISIBLE_DEVICES of the environment", vm);
  if (gpus.devices.empty())
    spdlog::warn("{}: the kernel does not say which device files a MIG device needs: its workers may open all", vm);
}

}  // namespace

std::string Daemon::not_served(const std::string& vm, const std::string& why) {
  const std::string own = "VM " + vm + ": ";
  return fmt::format("VM {} is not served: {}", vm, why.starts_with(own) ? why.substr(own.size()) : why);
}

std::string Daemon::not_taken(const RefusedFile& file, bool served) {
  if (file.vm.empty()) return file.sentence;
  return fmt::format("{}; {}", file.sentence, served ? "the VM stays as it is" : "the file is not taken");
}

bool Daemon::start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus,
                   std::string& error) {
  broker_ = config.broker;
  if (!succession_.prepare(broker_, error)) return false;
  WorkerProgram kept = program;
  kept.store = succession_.store();
  kept.life_fd = succession_.life_fd();
  kept.outlive_ms = succession_.outlive_ms();
  if (!services_.start(config, kept, gpus, succession_.manager().is_there(), error)) return false;
  std::vector<std::string> failures;
  for (std::size_t i = 0; i < config.vms.size(); ++i)
    if (!add(config.vms[i], gpus[i], error)) failures.push_back(not_served(config.vms[i].name, error));
  const auto& vms = config.vms;
  const bool own = std::any_of(vms.begin(), vms.end(), [](const VmOptions& vm) { return vm.file.empty(); });
  if (vms_.empty() && (own || !config.may_be_empty)) {
    if (failures.size() > 1) error = fmt::format("{}", fmt::join(failures, "; "));
    return false;
  }
  if (!sockets_.open(broker_, succession_.store(), error) || !watch_signals(error)) return false;
  gputime_ = services_.start_gpu_time();
  lost_watch_ = loop_.watch(GuardedMemory::lost_fd(), POLLIN, [this](short) { remove_lost(); });
  succession_.forget_left();
  services_.report_groups();
  for (const std::string& failure : failures) spdlog::error("{}", failure);
  for (const RefusedFile& file : config.refused) spdlog::error("{}", not_taken(file, false));
  for (const std::string& remark : config.remarks) spdlog::warn("{}", remark);
  return true;
}

bool Daemon::add(const VmOptions& options, const VmGpus& gpus, std::string& error) {
  std::vector<VmOptions> together = options_of_vms();
  together.push_back(options);
  // A VM that still runs may have the user that the reloaded file gives to another VM.
  const auto same_user = [&](const auto& vm) { return vm->options().worker_uid == options.worker_uid; };
  together.back().own_uid = options.own_uid && std::none_of(vms_.begin(), vms_.end(), same_user);
  const bool fits = plain_files_fit(together, error);
  auto vm = fits ? Vm::create(loop_, together.back(), broker_, services_.program_for(options, gpus), services_.traces(),
                              services_.scrub_queue(), error)
                 : nullptr;
  if (!vm) return false;
  report_gpus(options.name, gpus);
  vms_.push_back(std::move(vm));
  return true;
}

std::vector<VmOptions> Daemon::options_of_vms() const {
  std::vector<VmOptions> all;
  for (const auto& vm : vms_) all.push_back(vm->options());
  return all;
}

void Daemon::when_warm(const std::function<void()>& ready) {
  cold_ = vms_.size();
  if (cold_ == 0) ready();
  for (const auto& vm : vms_)
    vm->when_warm([this, ready] {
      if (--cold_ == 0) ready();
    });
}

BrokerStatus Daemon::status() const {
  BrokerStatus status{IVGPU_VERSION, services_.library(), Clock::now() - started_, loop_.iterations(), {}};
  for (const auto& vm : vms_) status.vms.push_back(vm->status());
  add_gpu_time(status);
  return status;
}

void Daemon::add_gpu_time(BrokerStatus& status) const {
  const scheduler::Scheduler::Report& report = services_.scheduler().report();
  for (const auto& [gpu, sharing] : report.sharing) status.gpus.push_back({gpu, sharing});
  status.gpu_time_missing = gputime_ != nullptr ? gputime_->missing() : "";
  for (std::size_t i = 0; i < vms_.size(); ++i)
    if (const auto account = report.vms.find(vms_[i]->scheduled_as()); account != report.vms.end())
      status.vms[i].gpu_time = GpuTimeStatus{share_of(vms_[i]->options()), account->second};
}

std::string Daemon::status_line() const {
  return fmt::format("serving {} VM(s) with {}", vms_.size(), services_.library());
}

void Daemon::run(int stay_fd) {
  if (stay_fd >= 0) signals_.watch_pipe(stay_fd, [this] { stop("who started it has ended"); });
  succession_.manager().ready(status_line());
  loop_.run();
}

void Daemon::on_control(std::string_view line, AnswerServer::Answer answer) {
  if (line == reload_request) return reload_for(answer);
  answer.reply(end_sessions(line) + "\n");
  answer.end();
}

// Returns the answer to `ivgpu end`.
std::string Daemon::end_sessions(std::string_view line) {
  const auto request = parse_end(line);
  if (!request) return "error a VM's name is expected, or a name and a session as in VM/3";
  const auto vm =
      std::find_if(vms_.begin(), vms_.end(), [&](const auto& v) { return v->options().name == request->vm; });
  if (vm == vms_.end())
    return fmt::format("error there is no VM {}; `ivgpu status` shows those that are served", request->vm);
  const std::size_t ended = (*vm)->end_sessions(request->slot);
  if (request->slot && ended == 0)
    return fmt::format("error VM {} has no session {}; `ivgpu status` shows those that it has", request->vm,
                       *request->slot);
  spdlog::info("{}: `ivgpu end` ends {} session(s)", request->vm, ended);
  return fmt::format("ok {}", ended);
}

bool Daemon::watch_signals(std::string& error) {
  return signals_.watch(
      {SIGTERM, SIGINT, SIGHUP}, [this](int number) { on_signal(number); }, error);
}

void Daemon::on_signal(int number) {
  if (number == SIGTERM && succession_.is_prepared()) return leave();
  if (number != SIGHUP) return stop("asked to end");
  if (!stopping_) reload("SIGHUP");
}

void Daemon::stop(const char* why) {
  if (stopping_) return;
  stopping_ = true;
  spdlog::info("ending: {}", why);
  succession_.manager().stopping();
  report_.forget_askers();
  sockets_.close();
  for (auto& vm : leaving_) vms_.push_back(std::move(vm));
  leaving_.clear();
  running_ = vms_.size() + 1;
  for (const auto& vm : vms_) vm->stop(end_patience, [this] { one_has_ended(); });
  one_has_ended();
}

// Cleans up as little as a kill would, so that the next broker starts alike after both. Ends only what the next broker
// cannot take over.
void Daemon::leave() {
  if (stopping_) return;
  stopping_ = leaving_all_ = true;
  std::size_t sessions = 0;
  for (const auto& vm : vms_) sessions += vm->sessions();
  spdlog::info("ending: asked to end; {} session(s) go on for {} s without ivgpud", sessions, broker_.outlive_s);
  succession_.manager().stopping();
  leaving_.clear();
  std::erase_if(vms_, [](const auto& vm) { return !vm->outlives_broker(); });
  services_.leave();
  succession_.manager().finish();
  loop_.stop();
}

// When the last worker has gone, MPS has no clients left.
void Daemon::one_has_ended() {
  if (--running_ > 0) return;
  services_.end([this] { loop_.stop(); });
}

}  // namespace host::broker
