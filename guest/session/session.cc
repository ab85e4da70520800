#include "guest/session/session.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "guest/log.h"
#include "guest/region/cache_probe.h"
#include "guest/session/holders.h"
#include "guest/session/order.h"
#include "guest/session/owner.h"
#include "guest/session/slot_step.h"
#include "guest/switches.h"
#include "ring/api/call.h"
#include "ring/api/records.h"
#include "ring/release.h"

namespace guest {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
// How long a program waits for a worker: starting one costs the driver's initialisation, 0.2 to 0.4 s on an idle GPU.
constexpr std::uint64_t claim_patience_ns = 20 * second_ns;
// After how much of that its user is told for whom it waits.
constexpr std::uint64_t silent_claim_ns = second_ns;
// How often it looks meanwhile whether a slot's owner has died: in a VM nobody else does.
constexpr std::uint64_t between_burials_ns = second_ns / 10;
// How much of the arena is registered with the GPU at once: the staging chunks and a little pinned memory.
constexpr std::uint64_t first_pin_bytes = 16 << 20;

constexpr std::uint64_t last_senders_ns = 200'000'000;  // four of a parked thread's sleeps
// How often a guest that waits asks whether the broker lives, and after how many questions without an answer it is
// gone: one is late on a busy machine, and no call shall hang for more than a second.
constexpr std::uint64_t between_questions_ns = second_ns / 10;
constexpr int broker_patience = 7;

std::atomic<Session*> the_session{nullptr};

bool await_all(Session& s) {
  for (std::uint32_t c = 0; c < s.open_channels(); ++c)
    if (!s.channel(c).await_executed(s.channel(c).posted())) return false;
  return true;
}

// Two threads may use one stream at the same time. A use by another channel tells that the channel is open, but hands
// nothing over: how many are open does.
bool await_executed(Use use) {
  Session& s = *session();
  if (use.channel == LastUse::any_channel) return await_all(s);
  while (use.channel >= s.open_channels()) __builtin_ia32_pause();
  return s.channel(use.channel).await_executed(use.position);
}

void sleep_ns(long ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&pause, nullptr);
}

// Before hello a worker serves nothing: in a slot where anything has happened, somebody has written nonsense.
bool untouched(const ring::SlotView& slot) {
  using Header = ring::SlotHeader;
  using Control = ring::ChannelControl;
  const auto zero = [](auto place, auto... words) {
    return ((place[words].load(std::memory_order_relaxed) == 0) && ...);
  };
  bool all = zero(slot.header(), &Header::fault, &Header::output, &Header::opened);
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
    all &= zero(slot.control(c), &Control::tail, &Control::head, &Control::executed, &Control::reply_position,
                &Control::deferred_count);
  }
  return all;
}

}  // namespace

Session* session() { return the_session.load(std::memory_order_acquire); }
void set_session(Session* session) { the_session.store(session, std::memory_order_release); }

// Another program of this VM may have written over a slot that nobody had taken. Given back, it is new for whoever
// takes it next: so each slot is tried, and one more time.
std::unique_ptr<Session> Session::open(std::unique_ptr<Region> region, bool reserve_device) {
  const std::optional<CheckedRegion> checked = check_region(*region);
  if (!checked) return nullptr;
  const std::uint64_t until = monotonic_nanoseconds() + claim_patience_ns;
  const std::uint32_t tries = checked->slot_count + 1;
  for (std::uint32_t i = 0; i < tries; ++i) {
    std::unique_ptr<Session> s(new Session(std::move(region), *checked, reserve_device));
    if (!s->claim(until)) return nullptr;
    const Entered entered = s->enter_slot();
    if (entered == Entered::Yes) return s;
    s->leave();
    s->unmap_slot();
    if (entered == Entered::Refused) return nullptr;
    log(Level::Info, "session slot %u was spoilt by somebody: another is tried", s->slot_index_);
    region = std::move(s->region_);
  }
  log(Level::Error, "%u session slots were spoilt, one after the other", tries);
  return nullptr;
}

Session::Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device)
    : region_(std::move(region)),
      checked_(checked),
      futexes_(region_->same_kernel()),
      reserve_device_(reserve_device) {}

Session::~Session() { leave(); }

bool Session::try_claim(std::uint32_t slot, const ring::SlotOwner& self) {
  const auto claimed = guest::claim(entry(slot), self);
  if (!claimed) return false;
  entry(slot)[&ring::SlotEntry::program].copy_in(this_program().text);
  claimed_ = *claimed;
  slot_index_ = slot;
  region_->ring(ring::peer_broker);
  return true;
}

// A slot whose process has died without a word goes back to the broker.
void Session::free_dead(std::uint32_t slot, const ring::SlotOwner& self) {
  if (bury(entry(slot), [&](const ring::SlotOwner& owner) { return certainly_dead(owner, self); }))
    region_->ring(ring::peer_broker);
}

bool Session::broker_answers() {
  const Region::Broker broker = region_->broker();
  if (broker == Region::Broker::Gone) return log(Level::Error, "the broker has ended"), false;
  if (broker == Region::Broker::Unknown && !heart_beats())
    return log(Level::Error, "the broker does not answer; if it was restarted, this VM must be started again"), false;
  return true;
}

bool Session::claim(std::uint64_t until) {
  const ring::SlotOwner self = this_process(region_->peer());
  const std::uint64_t warn_at = monotonic_nanoseconds() + silent_claim_ns;
  std::uint64_t next_burial = 0;
  bool asked = false, warned = false;
  do {
    if (const std::uint64_t now = monotonic_nanoseconds(); now >= next_burial) {
      for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot) free_dead(slot, self);
      next_burial = now + between_burials_ns;
    }
    for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot)
      if (try_claim(slot, self)) return true;
    if (!asked) {
      header()[&ring::RegionHeader::wanted].fetch_add(1, std::memory_order_relaxed);
      region_->ring(ring::peer_broker);
      asked = true;
    }
    if (!broker_answers()) return false;
    if (!warned && monotonic_nanoseconds() >= warn_at) warned = warn_if_full();
    sleep_ns(1'000'000);
  } while (monotonic_nanoseconds() < until);
  log(Level::Error, "none of the %u session slots of this VM became free within %llu s", checked_.slot_count,
      static_cast<unsigned long long>(claim_patience_ns / second_ns));
  return false;
}

bool Session::warn_if_full() const {
  const std::string holders = holders_of_all(checked_);
  if (holders.empty()) return false;
  log(Level::Warn,
      "all %u session slots of this VM are taken, by %s; waiting for one, up to %llu s (the key slots of ivgpud's "
      "configuration gives more)",
      checked_.slot_count, holders.c_str(), static_cast<unsigned long long>(claim_patience_ns / second_ns));
  return true;
}

std::byte* Session::map_arena(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& window) {
  for (window = 0; window < ring::window_count && bytes <= ring::window_bytes && region_->same_address_space() == false;
       ++window)
    if (std::byte* at = region_->map(offset, bytes,
                                     reinterpret_cast<void*>(ring::window_address(static_cast<std::uint32_t>(window)))))
      return at;
  window = ring::window_count;
  if (!region_->same_address_space())
    log(Level::Warn,
        "none of the address windows for pinned memory is free in this process: its device addresses differ");
  return region_->map(offset, bytes, nullptr);
}

Session::Entered Session::enter_slot() {
  const std::uint64_t start = checked_.first_slot + slot_index_ * checked_.slot_bytes;
  const std::uint64_t arena_bytes = checked_.slot_bytes - ring::arena_offset;
  const std::uint64_t pin = std::min<std::uint64_t>(first_pin_bytes, arena_bytes / ring::huge_page * ring::huge_page);
  if (const Entered mapped = map_slot(start); mapped != Entered::Yes) return mapped;
  std::uint64_t window = 0;
  arena_base_ = map_arena(start + ring::arena_offset, arena_bytes, window);
  arena_bytes_ = arena_bytes;
  if (arena_base_ == nullptr)
    return log(Level::Error, "cannot map the arena: %s", std::strerror(errno)), Entered::Refused;
  if (arena_bytes < Arena::staging_bytes + ring::huge_page)
    return log(Level::Error, "the arena of %llu bytes is too small: give the VM a larger region or fewer slots",
               static_cast<unsigned long long>(arena_bytes)),
           Entered::Refused;
  if (!greet(window, pin)) return lost() ? Entered::Spoilt : Entered::Refused;
  make_arena(arena_bytes, pin);
  return Entered::Yes;
}

Session::Entered Session::map_slot(std::uint64_t start) {
  std::byte* control = region_->map(start, ring::arena_offset, nullptr);
  if (control == nullptr)
    return log(Level::Error, "cannot map the session slot: %s", std::strerror(errno)), Entered::Refused;
  slot_ = ring::SlotView(control, ring::arena_offset);
  const std::uint64_t magic = slot_.header()[&ring::SlotHeader::magic].load(std::memory_order_acquire);
  ring::SlotHeader header = slot_.header().copy_out();
  if (magic != ring::slot_magic || header.version != ring::layout_version)
    return log(Level::Info, "session slot %u has magic %llx and layout version %u", slot_index_,
               static_cast<unsigned long long>(magic), header.version),
           Entered::Spoilt;  // the region's own header has told the right one
  if (!untouched(slot_))
    return log(Level::Info, "session slot %u is not as a worker leaves it", slot_index_), Entered::Spoilt;
  const std::uint64_t spin_us = std::uint64_t{header.spin_us} * ring::guest_spin_factor;
  if (ring::wrong(ring::Mutant::slot_twice)) header = slot_.header().copy_out();
  copy_devices();
  most_channels_ = std::clamp(header.channels, 1u, ring::max_channels);
  worker_knows_ = {header.driver_calls, header.session_calls};
  if (header.driver_calls == 0 || header.session_calls == 0) worker_knows_ = api::silent_workers_ids;
  if (worker_knows_.driver < api::known_ids.driver || worker_knows_.session < api::known_ids.session)
    log(Level::Info, "the host is of release %s and knows fewer calls than this library, of release %s",
        checked_.release, ring::this_release);
  spin_ns_ = switches().spin ? std::min<std::uint64_t>(spin_us, ring::longest_spin_us) * 1000 : 0;
  return Entered::Yes;
}

// Texts get the NUL that they may lack. A number of devices that there cannot be is refused when the session is adopted
// (guest/session/process.cc).
void Session::copy_devices() {
  devices_ = slot_.device_page().copy_out();
  if (ring::wrong(ring::Mutant::page_twice)) devices_ = slot_.device_page().copy_out();
  for (ring::DeviceInfo& device : devices_.device)
    device.name[sizeof device.name - 1] = device.bus_id[sizeof device.bus_id - 1] = '\0';
}

void Session::unmap_slot() {
  if (region_->same_address_space()) return;
  if (arena_base_ != nullptr) munmap(arena_base_, arena_bytes_);
  if (slot_.base() != nullptr) munmap(slot_.base(), ring::arena_offset);
}

void Session::make_arena(std::uint64_t arena_bytes, std::uint64_t pin) {
  arena = std::make_unique<Arena>(arena_base_, arena_bytes, pin, serves(api::id_of::join_arena),
                                  [this](std::uint64_t start, std::uint64_t end, bool join) {
                                    return ask_for_arena({.offset = start, .bytes = end - start}, join);
                                  });
}

Segments::Registered Session::ask_for_arena(const api::PinArenaRecord& record, bool join) {
  Channel& c = acquire_channel();
  Reply reply{.came = true, .result = CUDA_ERROR_DEVICE_UNAVAILABLE, .payload = {}};
  {
    std::lock_guard lock(c.mutex());
    ring::Writer w({});
    const int call = join ? api::id_of::join_arena : api::id_of::pin_arena;
    if (c.begin(call, sizeof record, w) == CUDA_SUCCESS) {
      w.bytes(&record, sizeof record);
      reply = c.await_reply(c.publish(ring::flag_wants_reply));
    }
  }
  release_channel(c);
  if (!reply.came) return Segments::Registered::Unknown;
  // Already: by an earlier request for the same range that was not answered in time (Arena asks for no other twice).
  const bool done = reply.result == CUDA_SUCCESS || reply.result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  return done ? Segments::Registered::Yes : Segments::Registered::No;
}

bool Session::greet(std::uint64_t window, std::uint64_t pin_bytes) {
  Channel& c = acquire_channel();
  Reply reply{.came = false, .result = CUDA_ERROR_DEVICE_UNAVAILABLE, .payload = {}};
  {
    std::lock_guard lock(c.mutex());
    ring::Writer w({});
    if (c.begin(api::id_of::hello, sizeof(api::HelloRecord), w) == CUDA_SUCCESS) {
      const api::HelloRecord record{.window = window, .pin_bytes = pin_bytes};
      w.bytes(&record, sizeof record);
      reply = c.await_reply(c.publish(ring::flag_wants_reply));
      ring::SharedReader reader(reply.payload);
      if (reply.result == CUDA_SUCCESS) arena_address_ = reader.read<api::HelloReply>().arena_address;
      if (!reader.ok()) reply.result = lose_to_nonsense();
    }
  }
  release_channel(c);
  if (reply.result != CUDA_SUCCESS && usable())
    log(Level::Error, "the worker refused the session with CUDA error %d", reply.result);
  return reply.result == CUDA_SUCCESS;
}

CUresult Session::refuse_unserved(int call) {
  static std::atomic<bool> reported[api::driver_ids];
  const bool first = call >= api::driver_ids || !reported[call].exchange(true, std::memory_order_relaxed);
  if (first)
    log(Level::Warn,
        "%s is not served by this host (release %s): install ivgpu %s there, or a library of the host's release here",
        api::name_of(call).data(), checked_.release, ring::this_release);
  return CUDA_ERROR_NOT_SUPPORTED;
}

Channel& Session::acquire_channel() {
  std::lock_guard lock(channels_mutex_);
  if (!free_channels_.empty()) {
    const std::uint32_t index = free_channels_.back();
    free_channels_.pop_back();
    return *channels_[index];
  }
  const std::uint32_t open = open_count_.load(std::memory_order_relaxed);
  if (open >= most_channels_) return *channels_[share_next_++ % open];
  channels_[open] = std::make_unique<Channel>(*this, open, slot_);
  open_count_.store(open + 1, std::memory_order_release);
  slot_.header()[&ring::SlotHeader::opened].fetch_or(1u << open, std::memory_order_release);
  region_->ring(ring::peer_of_slot(slot_index_));
  return *channels_[open];
}

void Session::release_channel(Channel& channel) {
  std::lock_guard lock(channels_mutex_);
  free_channels_.push_back(channel.index());
}

void Session::wake_worker(ring::Shared<std::uint32_t> word) {
  if (futexes_)
    syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  else
    region_->ring(ring::peer_of_slot(slot_index_));
}

void Session::lose(const char* why) {
  if (condition_.exchange(Condition::Lost) != Condition::Lost)
    log(Level::Error, "the session with the host is lost: %s", why);
}

// Not from Lost: that is final.
void Session::suspend() {
  auto open = Condition::Open;
  if (condition_.compare_exchange_strong(open, Condition::Suspended))
    log(Level::Error,
        "the broker does not answer: calls fail until it does; if it was restarted, this VM must be started again");
}

bool Session::slot_is_ours() const {
  return entry(slot_index_)[&ring::SlotEntry::state].load(std::memory_order_acquire) == claimed_.word();
}

// What a call that waits for nothing can afford: a word that is in the cache, and the clock of the last timer tick.
bool Session::attached() {
  if (!usable()) return comes_back();
  if (entry(slot_index_)[&ring::SlotEntry::state].load(std::memory_order_relaxed) != claimed_.word())
    return host_alive();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::uint64_t tick =
      static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  if (tick - last_look_ms_.load(std::memory_order_relaxed) < between_questions_ns / 1'000'000) return true;
  last_look_ms_.store(tick, std::memory_order_relaxed);
  return host_alive();
}

// The slot's word tells that the worker has gone; the connection or, in a VM, the heartbeat, that the broker has.
bool Session::host_alive() {
  if (!usable()) return false;
  if (!slot_is_ours()) return lose("its worker has ended"), false;
  switch (region_->broker()) {
    case Region::Broker::Lives: return true;  // however late its heartbeat is
    case Region::Broker::Gone: return lose("the broker has ended"), false;
    case Region::Broker::Unknown: return heart_beats() || (suspend(), false);
  }
  return false;
}

// A suspended session is open again when the broker answers and the slot's word is still ours: its epoch tells the slot
// from a later one of the same number, and its state that the worker lives. What became of the calls that were given up
// meanwhile: guest/channel/channel.cc.
bool Session::comes_back() {
  if (lost()) return false;
  if (!slot_is_ours()) return lose("its worker has ended"), false;
  if (!answers_again()) return false;
  auto suspended = Condition::Suspended;
  if (condition_.compare_exchange_strong(suspended, Condition::Open))
    log(Level::Warn, "the broker answers again: the session goes on; calls that failed meanwhile are not made up for");
  return usable();
}

// The broker counts its heartbeat up when it is rung (docs/design/011-heartbeat.md). Questions are counted, not time: a
// paused VM's clock jumps, and a program that seldom calls seldom asks.
bool Session::heart_beats() {
  std::lock_guard lock(alive_mutex_);
  const std::uint64_t beat = header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed);
  if (beat != std::exchange(last_beat_, beat)) unanswered_ = 0;
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ < between_questions_ns) return true;
  if (unanswered_ == broker_patience) return false;
  last_question_ns_ = now;
  ++unanswered_;
  region_->ring(ring::peer_broker);
  return true;
}

// The same question as long as the session is suspended. Any beat since the last look is an answer.
bool Session::answers_again() {
  std::lock_guard lock(alive_mutex_);
  const std::uint64_t beat = header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed);
  if (beat != std::exchange(last_beat_, beat)) return unanswered_ = 0, true;
  const std::uint64_t now = monotonic_nanoseconds();
  if (now - last_question_ns_ < between_questions_ns) return false;
  last_question_ns_ = now;
  region_->ring(ring::peer_broker);
  return false;
}

std::optional<std::uint64_t> Session::device_view(std::uint64_t at, std::uint64_t bytes) const {
  if (allocations.contains(at, bytes)) return at;
  const auto* here = reinterpret_cast<const std::byte*>(at);
  if (const auto offset = arena->offset_of(here, bytes)) return device_address(*offset);
  return arena->holds(at - arena_address_, bytes) ? std::optional(at) : std::nullopt;
}

// The program's other threads may still run, and the slot is soon another process's. So the session counts as lost from
// here on, which begin() looks at under its channel's lock, and whoever holds such a lock is waited for: a thread that
// waits for a reply sees the loss within a sleep, and does not write.
void Session::stop_senders() {
  condition_.store(Condition::Lost, std::memory_order_relaxed);
  const std::uint64_t until = monotonic_nanoseconds() + last_senders_ns;
  for (std::uint32_t c = 0; c < open_channels(); ++c) {
    std::unique_lock lock(channels_[c]->mutex(), std::defer_lock);
    while (!lock.try_lock() && monotonic_nanoseconds() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void Session::leave() {
  if (claimed_.state != ring::SlotState::Claimed || std::exchange(left_, true)) return;
  stop_senders();
  if (release(entry(slot_index_), claimed_)) region_->ring(ring::peer_broker);
}

bool executed(Use use) {
  Session* s = session();
  return s == nullptr || use.position == 0 || use.channel >= s->open_channels() ||
         s->channel(use.channel).executed(use.position);
}

bool wait_for_object(const Object& object, const Channel& mine) {
  return !switches().order || object.last_use.await_others(mine.index(), await_executed);
}

void remember(Object& object, Use use) {
  object.last_use.remember(use, [](Use last) { return !switches().order || await_executed(last); });
}

bool wait_for_all(const Channel& mine) {
  Session& s = *session();
  const std::uint32_t open = switches().order ? s.open_channels() : 0;
  for (std::uint32_t c = 0; c < open; ++c)
    if (c != mine.index() && !s.channel(c).await_executed(s.channel(c).posted())) return false;
  return true;
}

}  // namespace guest
