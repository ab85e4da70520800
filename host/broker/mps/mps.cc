#include "host/broker/mps/mps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "host/base/process/fd_store.h"
#include "host/broker/mps/mps_gpu.h"

namespace host::broker {

MpsRegistration::MpsRegistration(MpsGpu& gpu, std::string vm, Acts acts)
    : gpu_(gpu), vm_(std::move(vm)), acts_(std::move(acts)) {
  gpu_.join(*this);
}

MpsRegistration::~MpsRegistration() { gpu_.leave(*this); }

bool MpsRegistration::ready() const { return gpu_.ready(); }

void MpsRegistration::started(pid_t worker) { gpu_.started(worker); }

void MpsRegistration::adopted(pid_t worker) { gpu_.adopted(worker); }

void MpsRegistration::gone(pid_t worker) { gpu_.gone(worker); }

void MpsRegistration::crashed(const std::string& how) { gpu_.lose(fmt::format("a worker of VM {} {}", vm_, how)); }

void MpsRegistration::watch() { gpu_.watch(); }

void MpsRegistration::before_kill(pid_t worker, std::function<void()> then) { gpu_.terminate(worker, std::move(then)); }

std::unique_ptr<MpsConnectProxy> MpsRegistration::open_proxy(Fd listener, const std::string& worker) {
  return gpu_.open_proxy(std::move(listener), worker);
}

Mps::Mps(EventLoop& loop, Setting setting)
    : loop_(loop),
      setting_(std::move(setting)),
      left_(loop, [this](pid_t worker, const std::function<void()>& then) { let_go(worker, then); }) {
  if (setting_.store != nullptr)
    setting_.store->end_processes_by([this](Fd process) { left_.end(std::move(process)); });
}

Mps::~Mps() {
  if (setting_.store != nullptr) setting_.store->end_processes_by(nullptr);
}

Result<std::unique_ptr<MpsRegistration>> Mps::join(const Member& member, MpsRegistration::Acts acts) {
  auto& there = gpus_[member.gpu];
  if (there)
    if (const auto serves = there->serves(member.user); !serves) return serves.error();
  if (!there) {
    auto first = std::make_unique<MpsGpu>(loop_, MpsDaemon::Place{.program = setting_.program,
                                                                  .runtime_dir = setting_.runtime_dir,
                                                                  .gpu = member.gpu,
                                                                  .uid = member.user.uid,
                                                                  .gid = member.user.gid,
                                                                  .priority = setting_.priority,
                                                                  .store = setting_.store,
                                                                  .supervisor = setting_.supervisor,
                                                                  .life_fd = setting_.life_fd,
                                                                  .outlive_ms = setting_.outlive_ms,
                                                                  .waits = setting_.may_be_second});
    if (const auto started = first->start(member.goes_on); !started) return started.error();
    there = std::move(first);
  }
  return std::unique_ptr<MpsRegistration>(new MpsRegistration(*there, member.vm, std::move(acts)));
}

std::string Mps::pipe_of(const std::string& gpu) const { return mps_folders(setting_.runtime_dir, gpu).pipe; }

// Asks all GPUs: the worker's GPU is unknown, and the servers of other GPUs do not know this client.
void Mps::let_go(pid_t worker, const std::function<void()>& then) {
  auto left = std::make_shared<std::size_t>(1);
  const auto one_less = [left, then] {
    if (--*left == 0) then();
  };
  for (auto& [name, gpu] : gpus_) {
    if (gpu == nullptr || worker == 0) continue;
    ++*left;
    gpu->terminate(worker, one_less);
  }
  one_less();
}

void Mps::leave() {
  left_.kill_all();
  for (auto& [name, gpu] : gpus_)
    if (gpu != nullptr) gpu->leave();
}

void Mps::end(std::function<void()> done) {
  left_.kill_all();
  auto left = std::make_shared<std::size_t>(1);
  const auto one_less = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (auto& [name, gpu] : gpus_) {
    if (gpu == nullptr) continue;  // its daemon never started
    ++*left;
    gpu->end(one_less);
  }
  one_less();
}

}  // namespace host::broker
