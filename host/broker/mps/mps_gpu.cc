#include "host/broker/mps/mps_gpu.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace host::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto between_looks = milliseconds(250);
// For each of the two requests before a worker is killed. On an H200 a client was released in under 50 ms.
constexpr auto terminate_patience = milliseconds(500);
// For a keeper that ends its daemon in order (host/broker/mps/mps_supervisor_main.cc).
constexpr auto other_patience = seconds(10);
// After running this long a daemon starts with a clean failure count.
constexpr auto long_run = seconds(60);

// Process IDs of the daemon's servers, one a line. There is one server per user, and the folder belongs to one user.
std::vector<std::string> numbers_in(const std::string& reported) {
  std::vector<std::string> numbers;
  std::istringstream words(reported);
  for (std::string word; words >> word;)
    if (word.size() <= 10 && word.find_first_not_of("0123456789") == std::string::npos) numbers.push_back(word);
  return numbers;
}

}  // namespace

MpsGpu::MpsGpu(EventLoop& loop, MpsDaemon::Place place)
    : loop_(loop),
      daemon_(loop, std::move(place),
              {[this] { on_up(); }, [this](const std::string& why, bool was_up) { on_down(why, was_up); }}) {}

MpsGpu::~MpsGpu() {
  for (EventLoop::Id* id : {&retry_timer_, &grace_timer_, &look_timer_, &resolve_timer_}) loop_.forget(*id);
}

Result<void> MpsGpu::start(bool has_clients) {
  const auto adopted = daemon_.adopt();
  is_adopted_ = adopted && *adopted;
  if (!adopted)
    spdlog::warn("the MPS daemon of {} of before the restart is not gone on with: {}", daemon_.place().gpu,
                 adopted.error().message);
  const bool is_left = !adopted || daemon_.is_in_use();
  if (is_adopted_ || is_left || has_clients) {
    resolve_later();
    return {};
  }
  if (const auto prepared = daemon_.prepare(); !prepared) return prepared.error();
  daemon_.start();
  return {};
}

Result<void> MpsGpu::serves(const Mps::User& user) const {
  if (geteuid() != 0 || user.uid == daemon_.place().uid) return {};
  return Error{fmt::format(
      "policy = \"mps\": the MPS server of {} has the clients of one user, {}, and this VM's workers run as {}: give "
      "all VMs of a GPU one worker_uid",
      daemon_.place().gpu, daemon_.place().uid, user.uid)};
}

void MpsGpu::end(std::function<void()> done) {
  ending_ = true;
  for (EventLoop::Id* id : {&retry_timer_, &grace_timer_, &look_timer_, &resolve_timer_}) loop_.forget(*id);
  daemon_.end(std::move(done));
}

void MpsGpu::leave(const MpsRegistration& registration) { std::erase(registrations_, &registration); }

std::string MpsGpu::vms() const {
  std::string names;
  for (const MpsRegistration* registration : registrations_) names += (names.empty() ? "" : ", ") + registration->vm_;
  return names.empty() ? "no VM now" : names;
}

// ---- after a restart of the broker ---------------------------------------------------------------------------------

void MpsGpu::adopted(pid_t worker) {
  started(worker);
  if (!is_adopted_) resolve_later();
}

// Runs when all VMs have been added.
void MpsGpu::resolve_later() {
  if (resolve_timer_ != 0) return;
  resolve_timer_ = loop_.after(Clock::duration::zero(), [this] {
    resolve_timer_ = 0;
    resolve();
  });
}

void MpsGpu::resolve() {
  other_until_ = Clock::now() + other_patience;
  if (!is_adopted_) {
    lose("its MPS daemon was lost when ivgpud was restarted");
    return try_again();
  }
  up_since_ = moment_of(daemon_.saved().up_since_ns);
  spdlog::info("the MPS daemon of {} of before the restart goes on, for {}", daemon_.place().gpu, vms());
  if (std::exchange(daemon_.saved().is_lost, 0) != 0) lose("it was so before ivgpud was restarted");
  notify_ready();
}

// True while an earlier broker's daemon is still ending, which may take seconds.
bool MpsGpu::waits_for_other() {
  if (Clock::now() > other_until_ || !daemon_.is_in_use()) return false;
  retry_later(milliseconds(50));
  return true;
}

// ---- the daemon ----------------------------------------------------------------------------------------------------

void MpsGpu::on_up() {
  up_since_ = Clock::now();
  daemon_.saved().up_since_ns = in_nanoseconds(up_since_);
  spdlog::info("the MPS daemon of {} is up, for {}; what it logs is in {}", daemon_.place().gpu, vms(),
               daemon_.folders().log);
  notify_ready();
}

void MpsGpu::on_down(const std::string& why, bool was_up) {
  if (ending_) return;
  const Clock::time_point now = Clock::now();
  if (was_up && now - up_since_ > long_run) backoff_.succeeded();
  backoff_.failed(now);
  const auto pause = backoff_.left(now);
  spdlog::error(
      "the MPS daemon of {} {}; it is started again in {} ms, and until it is up these VMs get no workers: {}",
      daemon_.place().gpu, why, std::chrono::duration_cast<milliseconds>(pause).count(), vms());
  if (was_up) lose("its MPS daemon " + why);
  for (const MpsRegistration* registration : std::vector(registrations_))
    if (!was_up) registration->acts_.failed();
  retry_later(pause);
}

void MpsGpu::retry_later(Clock::duration pause) {
  retry_timer_ = loop_.after(pause, [this] {
    retry_timer_ = 0;
    try_again();
  });
}

// Restarts the daemon when its old clients have gone, with new folders.
void MpsGpu::try_again() {
  if (daemon_.runs() || retry_timer_ != 0 || !lost_.empty() || ending_ || waits_for_other()) return;
  if (const auto prepared = daemon_.prepare(); !prepared)
    return on_down("cannot be started: " + prepared.error().message, false);
  daemon_.start();
}

void MpsGpu::notify_ready() {
  if (!ready()) return;
  for (const MpsRegistration* registration : std::vector(registrations_)) registration->acts_.ready();
}

// ---- clients -------------------------------------------------------------------------------------------------------

void MpsGpu::lose(const std::string& why) {
  if (ending_ || !lost_.empty() || clients_.empty()) return;
  lost_ = clients_;
  daemon_.saved().is_lost = 1;
  for (const MpsRegistration* registration : std::vector(registrations_))
    registration->acts_.lost(fmt::format("all clients of MPS on {} are lost: {}", daemon_.place().gpu, why));
  grace_timer_ = loop_.after(MpsRegistration::grace, [this] {
    grace_timer_ = 0;
    for (const MpsRegistration* registration : std::vector(registrations_)) registration->acts_.end_sessions();
  });
}

void MpsGpu::gone(pid_t worker) {
  clients_.erase(worker);
  if (lost_.erase(worker) == 0 || !lost_.empty()) return;
  loop_.forget(grace_timer_);
  daemon_.saved().is_lost = 0;
  notify_ready();
  try_again();
}

void MpsGpu::watch() {
  if (look_timer_ != 0 || ending_) return;
  look_timer_ = loop_.after(between_looks, [this] {
    look_timer_ = 0;
    bool any = false;
    for (const MpsRegistration* registration : std::vector(registrations_)) {
      any = any || registration->acts_.has_sessions();
      if (const std::string fault = registration->acts_.fault(); !fault.empty() && lost_.empty()) lose(fault);
    }
    if (any) watch();
  });
}

std::unique_ptr<MpsConnectProxy> MpsGpu::open_proxy(Fd listener, const std::string& worker) {
  return MpsConnectProxy::open(loop_, std::move(listener),
                               {.daemon = daemon_.folders().pipe + "/control",
                                .worker = worker,
                                .uid = daemon_.place().uid,
                                .gid = daemon_.place().gid});
}

// Has the server release a client before it is killed. Killing a client while the GPU works for it ends all clients.
void MpsGpu::terminate(pid_t worker, std::function<void()> then) {
  if (!daemon_.is_up()) return then();
  const auto has_servers = [this, worker, then = std::move(then)](const std::optional<std::string>& reported) {
    std::string words;
    for (const std::string& server : numbers_in(reported.value_or("")))
      words += fmt::format("terminate_client {} {}\n", server, worker);
    if (words.empty() || words.size() > Helper::longest_input) return then();
    daemon_.ask(words, terminate_patience, [then](const std::optional<std::string>&) { then(); });
  };
  daemon_.ask("get_server_list\n", terminate_patience, has_servers);
}

}  // namespace host::broker
