#include "host/broker/mps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "host/broker/mps_gpu.h"

namespace host::broker {

MpsSeat::MpsSeat(MpsGpu& gpu, std::string vm, Acts acts) : gpu_(gpu), vm_(std::move(vm)), acts_(std::move(acts)) {
  gpu_.join(*this);
}

MpsSeat::~MpsSeat() { gpu_.leave(*this); }

bool MpsSeat::ready() const { return gpu_.ready(); }

void MpsSeat::started(pid_t worker) { gpu_.started(worker); }

void MpsSeat::gone(pid_t worker) { gpu_.gone(worker); }

void MpsSeat::crashed(const std::string& how) { gpu_.lose(fmt::format("a worker of VM {} {}", vm_, how)); }

void MpsSeat::watch() { gpu_.watch(); }

void MpsSeat::before_kill(pid_t worker, std::function<void()> then) { gpu_.terminate(worker, std::move(then)); }

std::unique_ptr<MpsDoor> MpsSeat::open_door(Fd listener, const std::string& worker) {
  return gpu_.open_door(std::move(listener), worker);
}

Mps::Mps(EventLoop& loop, Setting setting) : loop_(loop), setting_(std::move(setting)) {}

Mps::~Mps() = default;

std::unique_ptr<MpsSeat> Mps::join(const std::string& gpu, const std::string& vm, User user, MpsSeat::Acts acts,
                                   std::string& error) {
  auto& there = gpus_[gpu];
  if (there && !there->serves(user, error)) return nullptr;
  if (!there) {
    auto first = std::make_unique<MpsGpu>(loop_, MpsDaemon::Place{.program = setting_.program,
                                                                  .runtime_dir = setting_.runtime_dir,
                                                                  .gpu = gpu,
                                                                  .uid = user.uid,
                                                                  .gid = user.gid,
                                                                  .priority = setting_.priority});
    if (!first->start(error)) return nullptr;
    there = std::move(first);
  }
  return std::unique_ptr<MpsSeat>(new MpsSeat(*there, vm, std::move(acts)));
}

void Mps::end(std::function<void()> done) {
  auto left = std::make_shared<std::size_t>(1);
  const auto one_less = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (auto& [name, gpu] : gpus_) {
    if (gpu == nullptr) continue;  // its daemon was never started
    ++*left;
    gpu->end(one_less);
  }
  one_less();
}

}  // namespace host::broker
