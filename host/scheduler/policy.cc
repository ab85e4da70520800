#include "host/scheduler/policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace host::scheduler {
namespace {

using namespace std::chrono_literals;

// docs/design/048-gpu-time.md has the measurement behind each constant.
constexpr Time quiet = 100us;  // a holder that has wanted nothing for this long has finished its burst
constexpr Time gone = 1ms;     // like `quiet`, for the time when the exchange budget is spent
// A VM of the latency class may be this far ahead and still preempt other VMs or keep its lease.
constexpr Time credit = 20ms;

bool is_in(const std::vector<Policy::Vm>& all, Policy::Vm vm) { return std::ranges::find(all, vm) != all.end(); }

double seconds(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Policy::add(Vm vm, const Share& share) {
  Member member;
  member.share = share;
  member.vruntime = min_vruntime_;
  members_.try_emplace(vm, member);
}

void Policy::set_share(Vm vm, const Share& share) {
  if (const auto found = members_.find(vm); found != members_.end()) found->second.share = share;
}

void Policy::remove(Vm vm) {
  members_.erase(vm);
  std::erase(holders_, vm);
  std::erase(next_holders_, vm);
}

void Policy::set_switching(bool can) {
  if (std::exchange(switches_, can) == can) return;
  for (auto& [vm, member] : members_) member.on = true;
  order_.reset();
  contended_ = under_way_ = preempting_ = false;
}

bool Policy::any_off() const {
  return std::ranges::any_of(members_, [](const auto& one) { return !one.second.on; });
}

void Policy::channels_changed(Vm vm) {
  if (const auto found = members_.find(vm); found != members_.end()) found->second.on = true;
}

// ---- a VM's demand -------------------------------------------------------------------------------------------------

void Policy::update(Vm vm, const Demand& demand, Time now) {
  const auto found = members_.find(vm);
  if (found == members_.end()) return;
  Member& member = found->second;
  // A call that waits in the driver because its VM's channels are disabled, for example a free, also needs the GPU.
  const bool wanted = member.demand.wants, wants = demand.wants || (!member.on && demand.calls);
  member.demand = demand;
  member.demand.wants = wants;
  member.pattern.update(member.demand, now - member.wants_since, member.share.latency);
  if (wants && !wanted) {
    if (now - member.quiet_since < quiet) return;  // the VM is between two calls of one burst
    member.wants_since = now;
    member.just_woke = true;
    member.beside = false;
    // Limits the lag: a VM may not save up time in which it did not want the GPU.
    member.vruntime = std::max(member.vruntime, min_vruntime_ - seconds(limits_.lease) / weight_of(member));
  }
  if (!wants && wanted) member.quiet_since = now, member.just_woke = false;
}

// A reserve is converted to a weight that depends on the other VMs' weights.
double Policy::weight_of(const Member& member) const {
  if (member.share.reserve <= 0) return member.share.weight;
  double others = 0;
  for (const auto& [vm, other] : members_)
    if (&other != &member && other.demand.wants) others += other.share.weight;
  const double part = std::min(member.share.reserve, 0.99);
  return std::max(member.share.weight, others * part / (1 - part));
}

void Policy::charge(Time now) {
  const Time passed = charged_ == Time::zero() ? Time::zero() : now - charged_;
  charged_ = now;
  if (passed <= Time::zero()) return;
  std::vector<Member*> users;
  for (auto& [vm, member] : members_) {
    const bool may = member.on && (!contended_ || member.beside || is_in(holders_, vm));
    if (may && wants(member, now)) users.push_back(&member);
    if (member.demand.wants && !may) member.account.waited += passed;
  }
  for (Member* user : users) {
    const Time part = passed / static_cast<std::int64_t>(users.size());
    user->vruntime += seconds(part) / weight_of(*user);
    user->account.had += part;
  }
  double least = INFINITY;
  for (const auto& [vm, member] : members_)
    if (wants(member, now)) least = std::min(least, member.vruntime);
  if (least != INFINITY) min_vruntime_ = std::max(min_vruntime_, least);
}

// Returns whether the VM wants the GPU. A VM between two calls of one burst counts as wanting it.
bool Policy::wants(const Member& member, Time now) { return member.demand.wants || now - member.quiet_since < quiet; }

// ---- decisions -----------------------------------------------------------------------------------------------------

bool Policy::holds(Vm vm) const { return !contended_ || is_in(holders_, vm); }

bool Policy::is_on(Vm vm) const {
  const auto found = members_.find(vm);
  return found == members_.end() || found->second.on;
}

// Returns the VMs that share a lease with this VM. With equal weights, the members of a shared lease progress at the
// same rate. A VM that is a lease ahead of another member does not take part.
std::vector<Policy::Vm> Policy::group_of(Vm vm) const {
  const Member& first = members_.at(vm);
  if (!first.pattern.fills_gaps()) return {vm};
  std::vector<Vm> group;
  for (const auto& [other, member] : members_) {
    const bool is_like = member.demand.wants && member.pattern.fills_gaps();
    const double ahead = member.vruntime - first.vruntime;
    if (is_like && ahead * weight_of(member) < seconds(limits_.lease)) group.push_back(other);
  }
  if (!is_in(group, vm)) group.push_back(vm);
  return group;
}

Time Policy::length() const { return limits_.lease * std::max<std::int64_t>(1, std::ssize(holders_)); }

// Returns how far a VM may be ahead of other VMs and still precede them.
double Policy::ahead_allowed(const Member& member) const {
  return member.share.latency ? seconds(credit) / weight_of(member) : 0;
}

// Returns whether the VM has just begun to want the GPU, and has had less GPU time than the holders.
bool Policy::should_preempt(const Member& waker) const {
  double least = INFINITY;
  for (const Vm vm : holders_)
    if (const auto found = members_.find(vm); found != members_.end()) least = std::min(least, found->second.vruntime);
  const double margin = waker.share.latency ? -ahead_allowed(waker) : seconds(limits_.lease / 2) / weight_of(waker);
  return waker.just_woke && waker.on && waker.vruntime + margin < least;
}

std::optional<Policy::Order> Policy::step(Time now) {
  charge(now);
  if (under_way_ || !switches_) return std::nullopt;
  std::vector<Vm> wanting, active;
  for (const auto& [vm, member] : members_) {
    if (wants(member, now)) wanting.push_back(vm);
    if (member.demand.wants || now - member.quiet_since < gone) active.push_back(vm);
  }
  if (active.size() < 2) {
    contended_ = false;
    return enforce(wanting.empty() ? holders_ : wanting, now);
  }
  if (!std::exchange(contended_, true)) since_ = now;
  std::erase_if(holders_, [&](Vm vm) { return !members_.contains(vm); });

  std::optional<Vm> next, waker;
  bool holders_want = false;
  Time quiet_for = Time::max();
  for (const Vm vm : holders_) {
    const Member& holder = members_.at(vm);
    holders_want |= wants(holder, now);
    quiet_for = std::min(quiet_for, now - holder.quiet_since);
  }
  bool is_overdue = false;
  for (const Vm vm : wanting) {
    if (is_in(holders_, vm)) continue;
    const Member& member = members_.at(vm);
    const bool overdue = !member.on && now - member.off_since > limits_.longest_off;
    const bool sooner =
        !next || (overdue && !is_overdue) || (overdue == is_overdue && member.vruntime < members_.at(*next).vruntime);
    if (sooner) next = vm, is_overdue = overdue;
    if (should_preempt(member) && (!waker || member.vruntime < members_.at(*waker).vruntime)) waker = vm;
  }
  const bool affordable = budget_.can_afford(now);
  if (!next) {  // only holders want the GPU; in a shared lease their weights may differ
    if (wanting.empty() || now - since_ < length()) return enforce(holders_, now);
    const auto least = std::ranges::min_element(
        wanting, [&](Vm a, Vm b) { return members_.at(a).vruntime < members_.at(b).vruntime; });
    return exchange(group_of(*least), now);
  }
  const bool is_over = holders_.empty() || (!holders_want && quiet_for >= (affordable || preempting_ ? quiet : gone));
  if (is_over) {
    if (!preempting_ && quiet_for < gone) budget_.spend();
    return exchange(group_of(*next), now);
  }
  const bool holders_fill_gaps =
      std::ranges::all_of(holders_, [&](Vm vm) { return members_.at(vm).pattern.fills_gaps(); });
  if (waker && !(holders_fill_gaps && members_.at(*waker).pattern.fills_gaps())) {
    if (affordable) {
      budget_.spend();
      for (const Vm vm : holders_) ++members_.at(vm).account.preempted;
      auto order = exchange(group_of(*waker), now);
      preempting_ = true;
      return order;
    }
    members_.at(*waker).beside = true;
    members_.at(*waker).just_woke = false;
  }
  double holders_least = INFINITY;
  for (const Vm vm : holders_) {
    const Member& holder = members_.at(vm);
    if (wants(holder, now)) holders_least = std::min(holders_least, holder.vruntime - ahead_allowed(holder));
  }
  const Member& candidate = members_.at(*next);
  if (candidate.pattern.fills_gaps() && holders_fill_gaps &&
      candidate.vruntime < holders_least + seconds(limits_.lease)) {
    auto all = holders_;
    all.push_back(*next);
    return exchange(std::move(all), now);
  }
  if (now - since_ >= length() && (is_overdue || candidate.vruntime < holders_least))
    return exchange(group_of(*next), now);
  return enforce(holders_, now);
}

// Makes an order so that a VM that wants the GPU is enabled only if it is a holder. VMs that do not want the GPU stay
// enabled. A VM that has just begun to want it stays enabled until the policy decides about it. If the order switches
// channels, `holders` become the holders when the order has been carried out.
std::optional<Policy::Order> Policy::enforce(std::vector<Vm> holders, Time now) {
  Order order;
  for (auto& [vm, member] : members_) {
    const bool may = !contended_ || !wants(member, now) || member.beside || is_in(holders, vm);
    if (may && !member.on) order.on.push_back(vm);
    if (!may && member.on) order.off.push_back(vm);
    member.just_woke = false;
  }
  next_holders_ = std::move(holders);
  if (order.on.empty() && order.off.empty()) {
    holders_ = next_holders_;
    return std::nullopt;
  }
  under_way_ = true;
  order_ = order;
  return order;
}

std::optional<Policy::Order> Policy::exchange(std::vector<Vm> next, Time now) {
  for (auto& [vm, member] : members_) member.beside = false;
  preempting_ = false;
  for (const Vm vm : next)
    if (!is_in(holders_, vm)) ++members_.at(vm).account.leases;
  since_ = now;
  return enforce(std::move(next), now);
}

void Policy::done(Time now, Time took) {
  under_way_ = false;
  if (!order_) return charge(now);
  // VMs that are being disabled run until the second call takes effect; the new holders pay for the context switch.
  const bool is_exchange = !order_->on.empty() && !order_->off.empty();
  charge(is_exchange ? now - took / 3 : now);
  charged_ = now;
  for (const Vm vm : order_->on)
    if (const auto found = members_.find(vm); found != members_.end()) found->second.on = true;
  for (const Vm vm : order_->off)
    if (const auto found = members_.find(vm); found != members_.end()) {
      found->second.on = false;
      found->second.off_since = now;
    }
  if (is_exchange) budget_.learn(took);
  order_.reset();
  if (holders_ != next_holders_) {
    holders_ = next_holders_;
    std::erase_if(holders_, [&](Vm vm) { return !members_.contains(vm); });
    since_ = now;
  }
}

Account Policy::account(Vm vm) const {
  const auto found = members_.find(vm);
  return found != members_.end() ? found->second.account : Account{};
}

}  // namespace host::scheduler
