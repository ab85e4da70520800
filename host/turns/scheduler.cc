#include "host/turns/scheduler.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "ring/turn_gate.h"
#include "ring/turn_naps.h"

namespace host::turns {
namespace {

using namespace std::chrono_literals;

constexpr Time shortest_sleep = 20us;  // it takes longer to wake up
constexpr Time report_patience = 20ms;

Time since_boot() { return std::chrono::steady_clock::now().time_since_epoch(); }

void ring_bell(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(fd, &one, sizeof one);
}

}  // namespace

std::unique_ptr<Scheduler> Scheduler::start(const Options& options, bool naps, std::string& error) {
  std::unique_ptr<Scheduler> scheduler(new Scheduler(options, naps));
  for (broker::Fd* fd : {&scheduler->news_, &scheduler->post_}) fd->reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  try {
    if (!scheduler->news_ || !scheduler->post_) throw std::system_error(errno, std::generic_category());
    scheduler->find_bells();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the broker's loop's
    scheduler->thread_ = std::thread([s = scheduler.get()] { s->run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } catch (const std::system_error& failed) {
    error = std::string("the scheduler of turns cannot be started: ") + failed.what();
    return nullptr;
  }
  return scheduler;
}

Scheduler::~Scheduler() {
  if (!thread_.joinable()) return;
  send(Stop{});
  thread_.join();
  // Boost's queue does not destroy what it still holds.
  messages_.consume_all([](const Message&) {});
  reports_.consume_all([](const auto&) {});
}

// ---- the broker's side ---------------------------------------------------------------------------------------------

void Scheduler::send(const Message& message) {
  while (!messages_.push(message)) std::this_thread::yield();  // the thread empties it within a millisecond
  ring_bell(post_.get());
}

void Scheduler::change(const Options& options) { send(options); }

void Scheduler::set_watched(bool watched) { send(Watched{watched}); }

Scheduler::Vm Scheduler::add_vm(const Share& share) {
  send(NewShare{++vms_, share});
  return vms_;
}

void Scheduler::change_vm(Vm vm, const Share& share) { send(NewShare{vm, share}); }

void Scheduler::remove_vm(Vm vm) { send(NoVm{vm}); }

Scheduler::Client Scheduler::add(Vm vm, std::shared_ptr<Line> line, std::vector<std::string> gpus) {
  send(NewClient{++clients_, vm, std::move(line), std::move(gpus)});
  return clients_;
}

void Scheduler::remove(Client client) { send(NoClient{client}); }

void Scheduler::suspect(Client client, const std::string& gpu) { send(Suspect{client, gpu}); }

const Scheduler::Report& Scheduler::report() {
  reports_.consume_all([](const auto&) {});  // of one that took too long
  send(Tell{});
  for (const Time until = since_boot() + report_patience; !reports_.pop(report_) && since_boot() < until;)
    std::this_thread::sleep_for(10us);
  return *report_;
}

const Scheduler::Report& Scheduler::report_of(Time age) {
  return since_boot() - report_->made <= age ? *report_ : report();
}

// ---- the thread ----------------------------------------------------------------------------------------------------

void Scheduler::run() {
  while (take_messages()) {
    const Time now = since_boot();
    Time next = Time::max();
    for (auto& [name, gpu] : gpus_) {
      next = std::min(next, step(gpu, now));
      note_turns(gpu, now);
    }
    rest(next);
  }
}

// False: it is to end.
bool Scheduler::take_messages() {
  Message message;
  while (messages_.pop(message)) {
    if (std::holds_alternative<Stop>(message)) return false;
    std::visit([this](const auto& one) { take(one); }, message);
  }
  return true;
}

void Scheduler::take(const Options& options) {
  options_ = options;
  for (auto& [name, gpu] : gpus_) {
    gpu.policy.set_on(options.on);
    gpu.policy.set_limits(options.limits);
  }
}

void Scheduler::take(const NewShare& message) {
  shares_[message.vm] = message.share;
  for (auto& [name, gpu] : gpus_) gpu.policy.set_share(message.vm, message.share.weight, message.share.latency);
}

void Scheduler::take(const NoVm& message) {
  shares_.erase(message.vm);
  for (auto& [name, gpu] : gpus_) gpu.policy.forget(message.vm);
}

void Scheduler::take(const NewClient& message) {
  lines_[message.client] = message.line;
  find_bells();
  const auto devices = std::min<std::size_t>(message.gpus.size(), ring::max_devices);
  for (std::uint32_t d = 0; d < devices; ++d) {
    auto [found, is_new] = gpus_.try_emplace(message.gpus[d]);
    Gpu& gpu = found->second;
    if (is_new) {
      gpu.policy.set_on(options_.on);
      gpu.policy.set_limits(options_.limits);
      gpu.policy.set_watched(watched_);
      for (const auto& [vm, share] : shares_) gpu.policy.set_share(vm, share.weight, share.latency);
    }
    gpu.places[message.client] = {message.line, d};
    gpu.policy.add(message.client, message.vm, d == 0);  // a worker's first context is on its first GPU
    const auto shown = ring::Grant::of(message.line->grant(d).word.load(std::memory_order_relaxed));
    if (shown != ring::Grant{}) gpu.policy.take_over(message.client, shown, request_of(gpu.places.at(message.client)));
  }
}

void Scheduler::take(const NoClient& message) {
  lines_.erase(message.client);
  find_bells();
  const Time now = since_boot();
  for (auto& [name, gpu] : gpus_)
    if (gpu.places.erase(message.client) != 0) gpu.policy.remove(message.client, now);
}

void Scheduler::take(Watched message) {
  watched_ = message.watched;
  for (auto& [name, gpu] : gpus_) gpu.policy.set_watched(watched_);
}

void Scheduler::take(const Suspect& message) {
  const auto gpu = gpus_.find(message.gpu);
  if (gpu != gpus_.end() && gpu->second.places.contains(message.client))
    gpu->second.policy.suspect(message.client, since_boot());
}

void Scheduler::take(Tell) {
  const Time now = since_boot();
  auto report = std::make_shared<Report>();
  report->made = now;
  for (const auto& [name, gpu] : gpus_) {
    report->takes_turns[name] = gpu.policy.takes_turns();
    report->in_turns[name] = gpu.in_turns_at(now);
    if (gpu.policy.takes_turns())
      for (const auto& [client, place] : gpu.places) report->rights[name][client] = gpu.policy.right_of(client, now);
    for (const auto& [vm, share] : shares_) {
      const Account account = gpu.policy.account(vm, now);
      report->vms[vm] += account;
      report->held[name][vm] = account.held;
    }
  }
  reports_.push(report);
}

Request Scheduler::request_of(const Place& place) {
  const ring::DeviceRequest& words = place.line->request(place.device);
  return {.waits_for_turn = words.waiting.load(std::memory_order_relaxed) != 0,
          .given_back = ring::answer_of(words),
          .submitted = ring::submissions(words),
          .waits = words.waits.load(std::memory_order_relaxed),
          .waited_ns = words.waited_ns.load(std::memory_order_relaxed),
          .busy_ns = words.busy_ns.load(std::memory_order_relaxed),
          .under_way = words.under_way.load(std::memory_order_relaxed) != 0,
          .heard = words.heard.load(std::memory_order_relaxed),
          .held_up = ring::held_up_under(words)};
}

Time Scheduler::step(Gpu& gpu, Time now) {
  const auto ask = [&](Client client) { return request_of(gpu.places.at(client)); };
  return gpu.policy.step(now, ask, [&](Client client, ring::Grant grant) {
    give(gpu.places.at(client), grant, gpu.policy.most_under_way());
  });
}

void Scheduler::note_turns(Gpu& gpu, Time now) const {
  gpu.in_turns = gpu.in_turns_at(now);
  gpu.stepped = now;
  const bool takes_turns = gpu.policy.takes_turns();
  if (takes_turns && !gpu.took_turns) ring_bell(news_.get());
  gpu.took_turns = takes_turns;
}

void Scheduler::give(const Place& place, ring::Grant grant, Time most_under_way) {
  ring::DeviceGrant& words = place.line->grant(place.device);
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(most_under_way);
  words.most_us.store(static_cast<std::uint32_t>(most.count()), std::memory_order_relaxed);
  ring::give(words, grant);
  syscall(SYS_futex, &words.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Scheduler::find_bells() {
  bells_ = {{post_.get(), POLLIN, 0}};
  for (const auto& [client, line] : lines_) bells_.push_back({line->bell_fd(), POLLIN, 0});
}

// Until the next look is due, a worker rings, or the broker has a message.
void Scheduler::rest(Time until_next) {
  if (until_next == Time::zero()) {
    if (naps_) return std::this_thread::sleep_for(ring::turn_nap);
    for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
    return;
  }
  if (until_next < shortest_sleep && !naps_) {
    for (const Time end = since_boot() + until_next; since_boot() < end;) __builtin_ia32_pause();
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until_next);
  const timespec limit{seconds.count(), (until_next - seconds).count()};
  if (ppoll(bells_.data(), bells_.size(), until_next == Time::max() ? nullptr : &limit, nullptr) <= 0) return;
  auto bell = bells_.begin();
  std::uint64_t rings;
  if (bell->revents != 0) [[maybe_unused]]
    const auto n = read(post_.get(), &rings, sizeof rings);
  for (const auto& [client, line] : lines_)
    if ((++bell)->revents != 0) line->drain_bell();
}

}  // namespace host::turns
