#include "host/broker/alloc/memory_leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

using worker::MemoryMessage, worker::MemoryWord;

// More than any GPU has; sums of a few of these do not overflow.
constexpr std::uint64_t absurd = std::uint64_t{1} << 56;

std::uint64_t mebi(std::uint64_t bytes) { return bytes >> 20; }

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) { return (bytes + step - 1) / step * step; }

MemoryMessage answer_to(const MemoryMessage& asked, MemoryWord word, std::uint64_t bytes, std::uint64_t total = 0) {
  return {worker::memory_kind, word, asked.device, asked.sequence, bytes, total};
}

}  // namespace

MemoryLeases::MemoryLeases(GpuAccounts& accounts, std::size_t slots, Acts acts)
    : accounts_(accounts), acts_(std::move(acts)), workers_(slots) {
  accounts_.join(*this);
}

MemoryLeases::~MemoryLeases() {
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot) release(slot);
  accounts_.leave(*this);
}

// ---- budgets -------------------------------------------------------------------------------------------------------

void MemoryLeases::bound(std::uint64_t quota, const VmGpus& gpus) {
  const bool had = quota_ != 0, has = quota != 0;
  gpus_ = gpus;
  for (auto& [gpu, share] : shares_) share.is_seen = false;
  for (const Gpu& gpu : gpus.list) share_of(accounts_.named(name_of(gpu))).is_seen = true;
  // Memory granted from the shared rest now counts against the VM's own quota, or the other way round.
  for (auto& [gpu, share] : shares_) {
    if (had && !has) gpu->rest.given += share.own.given;
    if (!had && has) gpu->rest.given -= share.own.given;
    share.own.limit = has ? std::optional(quota) : std::nullopt;
  }
  quota_ = quota;
  accounts_.plan();
  accounts_.watch();
}

std::uint64_t MemoryLeases::promised(const GpuAccount& gpu) const {
  for (const auto& [account, share] : shares_)
    if (account == &gpu && (share.is_seen || share.own.given != 0)) return quota_;
  return 0;
}

MemoryLeases::Share& MemoryLeases::share_of(GpuAccount& gpu) {
  Share& share = shares_[&gpu];
  if (share.gpu == nullptr) {
    share.gpu = &gpu;
    if (quota_ != 0) share.own.limit = quota_;
  }
  return share;
}

MemoryLeases::Share& MemoryLeases::first_share() {
  return share_of(accounts_.named(gpus_.list.empty() ? unknown_gpu : name_of(gpus_.list.front())));
}

std::uint64_t MemoryLeases::room(const Share& share) const {
  return quota_ != 0 ? share.own.room() : share.gpu->rest.room();
}

std::uint64_t MemoryLeases::chunk_of(const Share& share) const {
  return quota_ != 0 || share.gpu->rest.limit ? chunk : unbounded_chunk;
}

void MemoryLeases::give(Share& share, std::uint64_t bytes) {
  share.own.given += bytes;
  if (quota_ == 0) share.gpu->rest.given += bytes;
}

void MemoryLeases::take_back(Share& share, std::uint64_t bytes) {
  share.own.given -= bytes;
  if (quota_ == 0) share.gpu->rest.given -= bytes;
}

// Bounds the worker's own account of its use by its lease.
std::uint64_t MemoryLeases::taken_of(std::uint32_t slot, unsigned device) const {
  return std::min(acts_.taken(slot, device), workers_[slot].held[device].lent);
}

std::uint64_t MemoryLeases::held_by(std::uint32_t slot, const Share& share) const {
  std::uint64_t sum = 0;
  for (unsigned device = 0; device < workers_[slot].devices; ++device)
    if (const Held& held = workers_[slot].held[device]; held.share == &share)
      sum += held.overhead + taken_of(slot, device);
  return sum;
}

std::uint64_t MemoryLeases::used(const Share& share) const {
  std::uint64_t sum = 0;
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot) sum += held_by(slot, share);
  return sum;
}

std::vector<std::uint64_t> MemoryLeases::held(const std::string& gpu) const {
  std::vector<std::uint64_t> all(workers_.size());
  const std::string key = key_of(gpu);
  for (const auto& [account, share] : shares_)
    if (key_of(account->name) == key)
      for (std::uint32_t slot = 0; slot < all.size(); ++slot) all[slot] = held_by(slot, share);
  return all;
}

void MemoryLeases::see_peak(Share& share) { share.peak = std::max(share.peak, used(share)); }

// ---- a worker's life -----------------------------------------------------------------------------------------------

std::uint64_t MemoryLeases::context_bytes() const {
  return accounts_.named(gpus_.list.empty() ? unknown_gpu : name_of(gpus_.list.front())).context;
}

bool MemoryLeases::may_start(bool wanted) {
  Share& share = first_share();
  // An estimate must not prevent a VM's first worker, which gives the measured value.
  const bool to_be_tried = !share.gpu->context_measured && share.own.given == 0;
  if (share.gpu->context <= room(share) || to_be_tried) return true;
  start_wanted_ = start_wanted_ || (wanted && begin_round(share, std::nullopt));
  return false;
}

std::string MemoryLeases::why_not() const {
  std::string text;
  for (const auto& [gpu, share] : shares_)
    if (room(share) < gpu->context)
      text += fmt::format("{}{} MiB of {} are given out, {} MiB are left, and a worker takes {} MiB",
                          text.empty() ? "" : "; ", mebi(share.own.given), gpu->name, mebi(room(share)),
                          mebi(gpu->context));
  return text;
}

void MemoryLeases::started(std::uint32_t slot, pid_t process) {
  Worker& w = workers_[slot];
  w = {};
  w.process = process;
  w.devices = 1;
  Held& held = w.held[0];
  held.share = &first_share();
  const GpuAccount& gpu = *held.share->gpu;
  held.overhead = std::min(gpu.context + (gpu.missing.empty() ? headroom : 0), room(*held.share));
  give(*held.share, held.overhead);
  see_peak(*held.share);
  accounts_.watch();
}

// Moves the charge to the right GPU: the driver may order GPUs differently from the kernel.
void MemoryLeases::ready(std::uint32_t slot, const worker::ReadyMessage& said) {
  Worker& w = workers_[slot];
  w.is_ready = true;
  w.devices = std::clamp<unsigned>(said.gpus, 1, ring::max_devices);
  for (unsigned device = 0; device < std::min(said.gpus, w.devices); ++device) {
    GpuAccount& gpu = accounts_.named(uuid_in_words(said.gpu[device].uuid));
    accounts_.learn_total(gpu, std::min(said.gpu[device].memory, absurd));
    Share& share = share_of(gpu);
    share.is_seen = true;
    move_to(w.held[device], share);
  }
  w.held[0].recent.fill(w.held[0].share->gpu->context);
  accounts_.plan();
}

void MemoryLeases::move_to(Held& held, Share& share) {
  if (held.share == &share) return;
  const std::uint64_t bytes = held.lent + held.overhead;
  if (held.share != nullptr) take_back(*held.share, bytes);
  held.share = &share;
  give(share, bytes);
}

void MemoryLeases::release(std::uint32_t slot) {
  Worker& w = workers_[slot];
  for (unsigned device = 0; device < w.devices; ++device)
    if (Held& held = w.held[device]; held.share != nullptr) take_back(*held.share, held.lent + held.overhead);
  w = {};
}

void MemoryLeases::gone(std::uint32_t slot) {
  if (workers_[slot].process == 0) return;
  release(slot);
  drop_question(slot);
  if (round_ && round_->waiting.erase(slot) != 0 && round_->waiting.empty()) round_over();
  acts_.more_room();
}

std::uint64_t MemoryLeases::lent(std::uint32_t slot, unsigned device) const {
  return device < workers_[slot].devices ? workers_[slot].held[device].lent : 0;
}

// An adopted worker keeps its lease, even if there is no room for it.
void MemoryLeases::adopt(std::uint32_t slot, pid_t process, const worker::ReadyMessage& said,
                         const std::uint64_t (&lent)[ring::max_devices]) {
  started(slot, process);
  ready(slot, said);
  for (unsigned device = 0; device < workers_[slot].devices; ++device) {
    Held& held = workers_[slot].held[device];
    held.lent = std::min(lent[device], absurd);
    give(*held.share, held.lent);
    see_peak(*held.share);
  }
}

// ---- messages of workers -------------------------------------------------------------------------------------------

bool MemoryLeases::heard(std::uint32_t slot, const MemoryMessage& message) {
  const Worker& w = workers_[slot];
  if (message.kind != worker::memory_kind || message.total != 0 || !w.is_ready || message.device >= w.devices ||
      message.bytes > absurd)
    return false;
  switch (message.word) {
    case MemoryWord::Borrow:
      if (message.bytes == 0) return false;
      borrow(slot, message);
      return true;
    case MemoryWord::Room:
      if (message.bytes != 0) return false;
      tell_room(slot, message);
      return true;
    case MemoryWord::Return: return returned(slot, message);
    default: return false;
  }
}

// A worker that asks again has stopped waiting for the first answer.
void MemoryLeases::drop_question(std::uint32_t slot) {
  std::erase_if(questions_, [slot](const Question& q) { return q.slot == slot; });
}

void MemoryLeases::borrow(std::uint32_t slot, const MemoryMessage& asked) {
  drop_question(slot);
  if (questions_.empty() && try_to_lend(slot, asked)) return;
  Share& share = *workers_[slot].held[asked.device].share;
  if (!round_ && !begin_round(share, slot)) return refuse(slot, asked);
  questions_.push_back({slot, asked});
}

bool MemoryLeases::try_to_lend(std::uint32_t slot, const MemoryMessage& asked) {
  Held& held = workers_[slot].held[asked.device];
  const std::uint64_t there = room(*held.share);
  if (there < asked.bytes) return false;
  const std::uint64_t bytes = std::min(rounded_up(asked.bytes, chunk_of(*held.share)), there);
  if (!acts_.send(slot, answer_to(asked, MemoryWord::Lend, bytes)))
    return true;  // the worker does not read: the grant is dropped
  held.lent += bytes;
  give(*held.share, bytes);
  see_peak(*held.share);
  return true;
}

void MemoryLeases::refuse(std::uint32_t slot, const MemoryMessage& asked) {
  acts_.send(slot, answer_to(asked, MemoryWord::Lend, 0));
}

// Memory that other workers have leased and do not use counts as available. The requester adds its own unused lease.
void MemoryLeases::tell_room(std::uint32_t slot, const MemoryMessage& asked) {
  const Share& share = *workers_[slot].held[asked.device].share;
  std::uint64_t free = room(share);
  if (free == worker::unbounded) {
    acts_.send(slot, answer_to(asked, MemoryWord::HasRoom, worker::unbounded, worker::unbounded));
    return;
  }
  for (std::uint32_t other = 0; other < workers_.size(); ++other)
    for (unsigned device = 0; device < workers_[other].devices && other != slot; ++device)
      if (workers_[other].held[device].share == &share)
        free += workers_[other].held[device].lent - taken_of(other, device);
  const std::uint64_t total = quota_ != 0 ? quota_ : *share.gpu->rest.limit;
  acts_.send(slot, answer_to(asked, MemoryWord::HasRoom, free, total));
}

bool MemoryLeases::returned(std::uint32_t slot, const MemoryMessage& said) {
  Held& held = workers_[slot].held[said.device];
  if (said.bytes > held.lent) return false;
  see_peak(*held.share);
  held.lent -= said.bytes;
  take_back(*held.share, said.bytes);
  if (round_ && said.sequence == round_->sequence && held.share == round_->share) {
    round_->waiting.erase(slot);
    if (round_->waiting.empty()) round_over();
  }
  if (said.bytes != 0) acts_.more_room();
  return true;
}

// ---- rounds --------------------------------------------------------------------------------------------------------

// Asks workers for the unused part of their leases. False if no worker has any, or if a round is in progress.
bool MemoryLeases::begin_round(Share& share, std::optional<std::uint32_t> for_slot) {
  if (round_) return false;
  if (++sequence_ == 0) ++sequence_;
  Round round{&share, sequence_, {}};
  for (std::uint32_t slot = 0; slot < workers_.size(); ++slot) {
    for (unsigned device = 0; device < workers_[slot].devices; ++device) {
      const Held& held = workers_[slot].held[device];
      if (slot == for_slot || held.share != &share || held.lent <= taken_of(slot, device)) continue;
      const MemoryMessage collect{worker::memory_kind, MemoryWord::Collect, device, sequence_, 0, 0};
      if (acts_.send(slot, collect)) round.waiting.insert(slot);
    }
  }
  if (round.waiting.empty()) return false;
  round_ = std::move(round);
  acts_.wake(answer_patience);
  return true;
}

// Called when all workers have answered or the time is up. A worker that did not answer is assumed to use its lease.
void MemoryLeases::round_over() {
  if (!round_) return;
  const Share& asked = *round_->share;
  round_.reset();
  answer_questions(asked);
  if (std::exchange(start_wanted_, false)) acts_.more_room();
}

// `collected`: the share whose workers have just answered. A question about another GPU starts its own round.
void MemoryLeases::answer_questions(const Share& collected) {
  while (!questions_.empty()) {
    const Question next = questions_.front();
    Share& share = *workers_[next.slot].held[next.message.device].share;
    const bool lent = try_to_lend(next.slot, next.message);
    if (!lent && &share != &collected && begin_round(share, next.slot)) return;
    questions_.pop_front();
    if (!lent) refuse(next.slot, next.message);
  }
}

std::vector<QuotaStatus> MemoryLeases::status() {
  std::vector<QuotaStatus> all;
  for (auto& [gpu, share] : shares_) {
    if (gpu->name == unknown_gpu) continue;
    see_peak(share);
    all.push_back({gpu->name, quota_, used(share), share.peak, gpu->missing});
  }
  std::sort(all.begin(), all.end(), [](const QuotaStatus& a, const QuotaStatus& b) { return a.gpu < b.gpu; });
  return all;
}

}  // namespace host::broker
