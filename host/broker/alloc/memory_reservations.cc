#include "host/broker/alloc/memory_reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

using worker::MemoryMessage, worker::MemoryWord;

std::uint64_t mebi(std::uint64_t bytes) { return bytes >> 20; }

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) { return (bytes + step - 1) / step * step; }

MemoryMessage answer_to(const MemoryMessage& asked, MemoryWord word, std::uint64_t bytes, std::uint64_t total = 0) {
  return {worker::memory_kind, word, asked.device, asked.sequence, bytes, total};
}

}  // namespace

MemoryReservations::MemoryReservations(GpuAccounts& accounts, std::size_t slots, Acts acts)
    : accounts_(accounts),
      acts_(std::move(acts)),
      shares_(accounts),
      holdings_(shares_, slots, acts_.taken),
      overhead_(shares_, holdings_,
                {.is_spare = acts_.is_spare,
                 .freed = acts_.more_headroom,
                 .lacks_room = [this](MemoryShare& share) { begin_round(share, std::nullopt); },
                 .holds_too_much = acts_.end}) {
  accounts_.join(*this);
}

MemoryReservations::~MemoryReservations() {
  for (std::uint32_t slot = 0; slot < holdings_.slots(); ++slot) holdings_.release(slot);
  accounts_.leave(*this);
}

void MemoryReservations::bound(std::uint64_t quota, const VmGpus& gpus) {
  shares_.bound(quota, gpus);
  accounts_.plan();
  accounts_.watch();
}

std::uint64_t MemoryReservations::chunk_of(const MemoryShare& share) const {
  return shares_.is_bounded(share) ? chunk : unbounded_chunk;
}

// ---- a worker's life -----------------------------------------------------------------------------------------------

bool MemoryReservations::may_start(bool wanted) {
  MemoryShare& share = shares_.first();
  // An estimate must not prevent a VM's first worker, which gives the measured value.
  const bool to_be_tried = !share.gpu->context_measured && share.own.given == 0;
  if (share.gpu->context <= shares_.headroom(share) || to_be_tried) return true;
  start_wanted_ = start_wanted_ || (wanted && begin_round(share, std::nullopt));
  return false;
}

std::string MemoryReservations::why_not() const {
  std::string text;
  for (const auto& [gpu, share] : shares_.all())
    if (const std::uint64_t headroom = shares_.headroom(share); headroom < gpu->context)
      text +=
          fmt::format("{}{} MiB of {} are given out, {} MiB are left, and a worker takes {} MiB",
                      text.empty() ? "" : "; ", mebi(share.own.given), gpu->name, mebi(headroom), mebi(gpu->context));
  return text;
}

void MemoryReservations::started(std::uint32_t slot, pid_t process) {
  overhead_.reset(slot);
  holdings_.started(slot, process);
  accounts_.watch();
}

void MemoryReservations::ready(std::uint32_t slot, const worker::ReadyMessage& reported) {
  holdings_.ready(slot, reported, accounts_);
  overhead_.ready(slot);
  accounts_.plan();
}

void MemoryReservations::gone(std::uint32_t slot) {
  if (holdings_.process(slot) == 0) return;
  holdings_.release(slot);
  overhead_.reset(slot);
  drop_question(slot);
  if (round_ && round_->waiting.erase(slot) != 0 && round_->waiting.empty()) round_over();
  acts_.more_headroom();
}

std::uint64_t MemoryReservations::reserved(std::uint32_t slot, unsigned device) const {
  return device < holdings_.devices(slot) ? holdings_.at(slot, device).reserved : 0;
}

// An adopted worker keeps its lease, even if there is no room for it.
void MemoryReservations::adopt(std::uint32_t slot, pid_t process, const worker::ReadyMessage& reported,
                               const std::uint64_t (&reserved)[ring::max_devices]) {
  started(slot, process);
  ready(slot, reported);
  for (unsigned device = 0; device < holdings_.devices(slot); ++device)
    holdings_.reserve(slot, device, std::min(reserved[device], WorkerHoldings::absurd));
}

// ---- messages of workers -------------------------------------------------------------------------------------------

bool MemoryReservations::heard(std::uint32_t slot, const MemoryMessage& message) {
  if (message.kind != worker::memory_kind || message.total != 0 || !holdings_.is_ready(slot) ||
      message.device >= holdings_.devices(slot) || message.bytes > WorkerHoldings::absurd)
    return false;
  switch (message.word) {
    case MemoryWord::Reserve:
      if (message.bytes == 0) return false;
      reserve(slot, message);
      return true;
    case MemoryWord::Headroom:
      if (message.bytes != 0) return false;
      report_headroom(slot, message);
      return true;
    case MemoryWord::Return: return returned(slot, message);
    default: return false;
  }
}

// A worker that asks again has stopped waiting for the first answer.
void MemoryReservations::drop_question(std::uint32_t slot) {
  std::erase_if(questions_, [slot](const Question& q) { return q.slot == slot; });
}

void MemoryReservations::reserve(std::uint32_t slot, const MemoryMessage& asked) {
  drop_question(slot);
  if (questions_.empty() && try_to_reserve(slot, asked)) return;
  MemoryShare& share = holdings_.share(slot, asked.device);
  if (!round_ && !begin_round(share, slot)) return refuse(slot, asked);
  questions_.push_back({slot, asked});
}

bool MemoryReservations::try_to_reserve(std::uint32_t slot, const MemoryMessage& asked) {
  const MemoryShare& share = holdings_.share(slot, asked.device);
  const std::uint64_t there = shares_.headroom(share);
  if (there < asked.bytes) return false;
  const std::uint64_t bytes = std::min(rounded_up(asked.bytes, chunk_of(share)), there);
  if (!acts_.send(slot, answer_to(asked, MemoryWord::Reserved, bytes)))
    return true;  // the worker does not read: the grant is dropped
  holdings_.reserve(slot, asked.device, bytes);
  return true;
}

void MemoryReservations::refuse(std::uint32_t slot, const MemoryMessage& asked) {
  acts_.send(slot, answer_to(asked, MemoryWord::Reserved, 0));
}

// Memory that other workers have leased and do not use counts as available. The requester adds its own unused lease.
void MemoryReservations::report_headroom(std::uint32_t slot, const MemoryMessage& asked) {
  const MemoryShare& share = holdings_.share(slot, asked.device);
  std::uint64_t free = shares_.headroom(share);
  if (free == worker::unbounded) {
    acts_.send(slot, answer_to(asked, MemoryWord::HasHeadroom, worker::unbounded, worker::unbounded));
    return;
  }
  for (std::uint32_t other = 0; other < holdings_.slots(); ++other)
    for (unsigned device = 0; device < holdings_.devices(other) && other != slot; ++device)
      if (holdings_.at(other, device).share == &share) free += holdings_.unused(other, device);
  acts_.send(slot, answer_to(asked, MemoryWord::HasHeadroom, free, shares_.limit(share)));
}

bool MemoryReservations::returned(std::uint32_t slot, const MemoryMessage& reported) {
  if (reported.bytes > holdings_.at(slot, reported.device).reserved) return false;
  holdings_.take_back(slot, reported.device, reported.bytes);
  if (round_ && reported.sequence == round_->sequence && holdings_.at(slot, reported.device).share == round_->share) {
    round_->waiting.erase(slot);
    if (round_->waiting.empty()) round_over();
  }
  if (reported.bytes != 0) acts_.more_headroom();
  return true;
}

// ---- rounds --------------------------------------------------------------------------------------------------------

// Asks workers for the unused part of their leases. False if no worker has any, or if a round is in progress.
bool MemoryReservations::begin_round(MemoryShare& share, std::optional<std::uint32_t> for_slot) {
  if (round_) return false;
  if (++sequence_ == 0) ++sequence_;
  Round round{&share, sequence_, {}};
  for (std::uint32_t slot = 0; slot < holdings_.slots(); ++slot) {
    for (unsigned device = 0; device < holdings_.devices(slot); ++device) {
      if (slot == for_slot || holdings_.at(slot, device).share != &share || holdings_.unused(slot, device) == 0)
        continue;
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
void MemoryReservations::round_over() {
  if (!round_) return;
  const MemoryShare& asked = *round_->share;
  round_.reset();
  answer_questions(asked);
  if (std::exchange(start_wanted_, false)) acts_.more_headroom();
}

// `collected`: the share whose workers have just answered. A question about another GPU starts its own round.
void MemoryReservations::answer_questions(const MemoryShare& collected) {
  while (!questions_.empty()) {
    const Question next = questions_.front();
    MemoryShare& share = holdings_.share(next.slot, next.message.device);
    const bool reserved = try_to_reserve(next.slot, next.message);
    if (!reserved && &share != &collected && begin_round(share, next.slot)) return;
    questions_.pop_front();
    if (!reserved) refuse(next.slot, next.message);
  }
}

std::vector<QuotaStatus> MemoryReservations::status() {
  std::vector<QuotaStatus> all;
  for (auto& [gpu, share] : shares_.all()) {
    if (gpu->name == unknown_gpu) continue;
    holdings_.see_peak(share);
    all.push_back({gpu->name, shares_.quota(), holdings_.used(share), share.peak, gpu->missing});
  }
  std::sort(all.begin(), all.end(), [](const QuotaStatus& a, const QuotaStatus& b) { return a.gpu < b.gpu; });
  return all;
}

std::vector<std::uint64_t> MemoryReservations::held(const std::string& gpu) const {
  std::vector<std::uint64_t> all(holdings_.slots());
  const std::string key = key_of(gpu);
  for (const auto& [account, share] : shares_.all())
    if (key_of(account->name) == key)
      for (std::uint32_t slot = 0; slot < all.size(); ++slot) all[slot] = holdings_.used_by(slot, share);
  return all;
}

}  // namespace host::broker
