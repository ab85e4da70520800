#include "host/scheduler/scheduler_loop.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "host/scheduler/channel_table.h"
#include "host/scheduler/rm_api.h"

namespace host::scheduler {
namespace {

using namespace std::chrono_literals;

// How often to update a VM's account, and to look for submissions without a doorbell.
constexpr Time look_alone_every = 10ms;
constexpr Time idle_after = 1s;  // a GPU that no VM has wanted for this long is not checked before the next doorbell
// The most channels of a VM on one GPU. A context has eight channels, and a call of the driver switches 64. Further
// channels stay enabled.
constexpr std::size_t most_of_a_vm = 1024;
constexpr Time shortest_rest = 20us;  // the shortest sleep, however often workers send doorbells
constexpr Time answer_patience = 2s;  // an exchange takes a millisecond

}  // namespace

SchedulerLoop::SchedulerLoop(const SchedulerOptions& options, SchedulerQueues& queues)
    : options_(options), queues_(queues) {
  find_doorbells();
}

void SchedulerLoop::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // in ns: with the default slack, a sleep of 50 us would take 100 us
  while (take_messages()) {
    Time now = since_boot(), next = Time::max();
    hear_switcher(now);
    for (auto& [name, gpu] : gpus_) {
      look(name, gpu, now);
      const bool active = now - gpu.active < idle_after;
      if (gpu.policy.is_contended() || gpu.under_way)
        next = Policy::look_every;
      else if (active)
        next = std::min(next, look_alone_every);
    }
    rest(next);
  }
}

// Returns false if the thread must end.
bool SchedulerLoop::take_messages() {
  SchedulerQueues::Message message;
  while (queues_.receive(message)) {
    if (std::holds_alternative<SchedulerQueues::Stop>(message)) return false;
    std::visit([this](const auto& one) { take(one); }, message);
  }
  return true;
}

void SchedulerLoop::take(const SchedulerOptions& options) {
  const bool ends = options_.on && !options.on;
  options_ = options;
  for (auto& [name, gpu] : gpus_) {
    gpu.policy.set_limits({.longest_off = options.longest_off});
    gpu.policy.set_switching(options.on && gpu.place.has_value());
  }
  if (ends) let_all_on();
}

void SchedulerLoop::take(const SchedulerQueues::NewShare& message) {
  shares_[message.vm] = message.share;
  for (auto& [name, gpu] : gpus_) gpu.policy.set_share(message.vm, message.share);
}

void SchedulerLoop::take(const SchedulerQueues::NoVm& message) {
  shares_.erase(message.vm);
  for (auto& [name, gpu] : gpus_) {
    gpu.policy.remove(message.vm);
    gpu.vms.erase(message.vm);
  }
}

void SchedulerLoop::take(const SchedulerQueues::NewClient& message) {
  Worker& worker = workers_[message.client];
  worker.vm = message.vm;
  worker.pages = message.pages;
  find_doorbells();
}

void SchedulerLoop::take(const SchedulerQueues::Ready& message) {
  const auto ours = workers_.find(message.client);
  if (ours == workers_.end()) return;
  for (auto& [client, worker] : workers_)
    if (worker.rm_client == message.rm_client) worker.rm_client = 0;
  Worker& worker = ours->second;
  worker.process = message.process, worker.rm_client = message.rm_client;
  worker.on.clear();
  const auto devices = std::min<std::size_t>(message.gpus.size(), ring::max_devices);
  for (std::uint32_t d = 0; d < devices; ++d) {
    const std::string& name = message.gpus[d];
    worker.on[name].device = d;
    auto [found, is_new] = gpus_.try_emplace(name);
    Gpu& gpu = found->second;
    if (is_new) {
      gpu.policy.set_limits({.longest_off = options_.longest_off});
      if (switcher_) gpu.place = switcher_->place_of(name);
      gpu.policy.set_switching(options_.on && gpu.place.has_value());
    }
    if (gpu.vms.insert(worker.vm).second) gpu.policy.add(worker.vm, shares_[worker.vm]);
    gpu.policy.channels_changed(worker.vm);
  }
  arm(worker);
}

void SchedulerLoop::take(const SchedulerQueues::NoClient& message) {
  workers_.erase(message.client);
  find_doorbells();
}

void SchedulerLoop::take(const SchedulerQueues::NewSwitcher& message) {
  switcher_ = std::move(*message.switcher);
  for (auto& [name, gpu] : gpus_) {
    gpu.under_way = false;
    gpu.place = switcher_ ? switcher_->place_of(name) : std::nullopt;
    gpu.policy.set_switching(options_.on && gpu.place.has_value());
  }
  let_all_on();
  find_doorbells();
}

void SchedulerLoop::take(SchedulerQueues::ReportRequest) {
  auto report = std::make_shared<SchedulerReport>();
  report->made = since_boot();
  for (const auto& [name, gpu] : gpus_) {
    report->sharing[name] = !gpu.policy.switches()                      ? Sharing::Unswitched
                            : report->made - gpu.contended < idle_after ? Sharing::Leases
                                                                        : Sharing::Alone;
    for (const auto& [vm, share] : shares_) {
      const Account account = gpu.policy.account(vm);
      report->vms[vm] += account;
      report->gpus[name][vm] = account;
    }
  }
  queues_.report(report);
}

// ---- looks ---------------------------------------------------------------------------------------------------------

Demand SchedulerLoop::demand_of(const Worker& worker, std::uint32_t device) const {
  const ring::UsePage& page = worker.pages->use();
  const ring::DeviceUse& use = page.device[device];
  Demand demand;
  const std::uint64_t settled = use.settled.load(std::memory_order_relaxed);
  demand.submitted = ring::submissions(use);
  demand.waits = use.waits.load(std::memory_order_relaxed);
  demand.wants = demand.submitted != settled;
  if (demand.wants) return demand;  // the calls in progress do not matter in this case
  for (const auto& steps : page.steps) demand.calls |= steps.load(std::memory_order_relaxed) % 2 != 0;
  return demand;
}

void SchedulerLoop::look(const std::string& name, Gpu& gpu, Time now) {
  std::map<Vm, Demand> demands;
  for (const Vm vm : gpu.vms) demands[vm] = {};
  for (auto& [client, worker] : workers_) {
    const auto on = worker.on.find(name);
    if (on == worker.on.end()) continue;
    if (!gpu.under_way) worker.pages->publish_whether_on(on->second.device, gpu.policy.is_on(worker.vm));
    const Demand its = demand_of(worker, on->second.device);
    Demand& sum = demands[worker.vm];
    sum.submitted += its.submitted, sum.waits += its.waits;
    sum.wants |= its.wants, sum.calls |= its.calls;
    // A worker is idle only for a moment between two calls of a burst, and need not send a doorbell for the next call.
    const bool is_idle = !its.wants && std::exchange(on->second.seen, its.submitted) == its.submitted;
    if (is_idle)
      arm(worker);
    else
      gpu.active = now;
  }
  for (const auto& [vm, demand] : demands) gpu.policy.update(vm, demand, now);
  if (gpu.under_way) {
    if (now - gpu.began > answer_patience) lose_switcher();
    return;
  }
  if (gpu.policy.is_contended()) gpu.contended = now;
  look_at_channels(name, gpu, now);
  if (const auto order = gpu.policy.step(now)) carry_out(name, gpu, *order, now);
}

// Disables the channels of a context that was made while its VM's channels are disabled. Such a context runs until this
// look. Tables are read at most a hundred times a second, however often a worker changes its table.
void SchedulerLoop::look_at_channels(const std::string& name, Gpu& gpu, Time now) {
  if (!gpu.place || !gpu.policy.is_contended() || now - gpu.read_tables < look_alone_every) return;
  gpu.read_tables = now;
  const std::uint32_t instance = switcher_->instance_of(*gpu.place);
  for (const auto& [client, worker] : workers_) {
    const auto on = worker.on.find(name);
    if (instance >= ring::max_devices || on == worker.on.end() || !on->second.version) continue;
    const std::uint32_t answered = worker.pages->use().channels[instance].version.load(std::memory_order_relaxed);
    if (answered != *on->second.version && answered % 2 == 0) gpu.policy.channels_changed(worker.vm);
  }
}

void SchedulerLoop::arm(Worker& worker) {
  for (const auto& [name, on] : worker.on) {
    std::atomic<std::uint32_t>& wake = worker.pages->orders(on.device).wake;
    if (wake.load(std::memory_order_relaxed) != 0) continue;
    wake_ = std::max(1U, wake_ + 1);
    wake.store(wake_, std::memory_order_relaxed);
  }
}

// ---- orders --------------------------------------------------------------------------------------------------------

std::vector<Switcher::Worker> SchedulerLoop::workers_of(const std::string& name, const Gpu& gpu,
                                                        const std::vector<Vm>& vms, bool to_be_on) {
  const std::uint32_t instance = switcher_->instance_of(*gpu.place);
  std::vector<Switcher::Worker> all;
  std::map<Vm, std::size_t> room_of;
  for (auto& [client, worker] : workers_) {
    const auto on = worker.on.find(name);
    if (on == worker.on.end() || std::ranges::find(vms, worker.vm) == vms.end()) continue;
    if (to_be_on) worker.pages->publish_whether_on(on->second.device, true);
    std::vector<SwitchedChannel> channels;
    if (instance < ring::max_devices)
      channels = read_channels(worker.pages->use().channels[instance], worker.rm_client, on->second.version.emplace(0));
    std::size_t& room = room_of.try_emplace(worker.vm, most_of_a_vm).first->second;
    channels.resize(std::min(channels.size(), room));
    room -= channels.size();
    all.push_back({worker.process, std::move(channels)});
  }
  return all;
}

void SchedulerLoop::carry_out(const std::string& name, Gpu& gpu, const Policy::Order& order, Time now) {
  gpu.under_way = true;
  gpu.began = kept_ = now;
  const auto on = workers_of(name, gpu, order.on, true), off = workers_of(name, gpu, order.off, false);
  if (!switcher_->begin(*gpu.place, on, off, false)) return lose_switcher();
  if (switcher_->fd() < 0) hear_switcher(now);
}

void SchedulerLoop::hear_switcher(Time now) {
  if (switcher_ == nullptr) return;
  bool lost = false;
  while (const auto answer = switcher_->answer(lost)) {
    for (auto& [name, gpu] : gpus_) {
      if (gpu.place != answer->gpu) continue;
      if (answer->everything_on) {
        for (const Vm vm : gpu.vms) gpu.policy.channels_changed(vm);
      } else if (std::exchange(gpu.under_way, false)) {
        gpu.policy.done(now, answer->took);
        if (answer->refused == rm::gpu_is_lost) gpu.place.reset(), gpu.policy.set_switching(false);
      }
    }
  }
  if (lost) return lose_switcher();
  const bool may_be_off = std::ranges::any_of(gpus_, [](const auto& one) { return one.second.policy.any_off(); });
  if (may_be_off && now - kept_ > options_.longest_off / 4) {
    kept_ = now;
    switcher_->keep(options_.longest_off);
  }
}

// The broker will make a new switcher, which enables all channels.
void SchedulerLoop::lose_switcher() {
  switcher_.reset();
  for (auto& [name, gpu] : gpus_) {
    gpu.under_way = false;
    gpu.place.reset();
    gpu.policy.set_switching(false);
  }
  find_doorbells();
  queues_.report_lost();
}

void SchedulerLoop::let_all_on() {
  for (auto& [name, gpu] : gpus_) {
    if (!gpu.place || !switcher_) continue;
    const auto all = workers_of(name, gpu, {gpu.vms.begin(), gpu.vms.end()}, true);
    gpu.under_way = true;
    gpu.began = since_boot();
    if (!switcher_->begin(*gpu.place, all, {}, true)) return lose_switcher();
  }
}

// ---- sleep ---------------------------------------------------------------------------------------------------------

void SchedulerLoop::find_doorbells() {
  doorbells_ = {{queues_.post_fd(), POLLIN, 0}, {switcher_ ? switcher_->fd() : -1, POLLIN, 0}};
  for (const auto& [client, worker] : workers_)
    doorbells_.push_back({worker.pages->scheduler_doorbell_fd(), POLLIN, 0});
}

// Waits until the next look is due, a worker sends a doorbell, the switcher answers, or the broker sends a message.
void SchedulerLoop::rest(Time until_next) {
  const Time since = since_boot() - std::exchange(rested_, since_boot());
  if (since < shortest_rest) std::this_thread::sleep_for(shortest_rest - since);
  timespec time{until_next / 1s, (until_next % 1s).count()};
  if (ppoll(doorbells_.data(), doorbells_.size(), until_next == Time::max() ? nullptr : &time, nullptr) <= 0) return;
  if (doorbells_[0].revents != 0) queues_.drain_post();
  std::size_t i = 2;
  for (auto& [client, worker] : workers_) {
    if (i < doorbells_.size() && doorbells_[i++].revents == 0) continue;
    worker.pages->drain_doorbell();
    for (const auto& [name, on] : worker.on) {
      gpus_.at(name).active = since_boot();
      worker.pages->orders(on.device).wake.store(0, std::memory_order_relaxed);
    }
  }
}

}  // namespace host::scheduler
