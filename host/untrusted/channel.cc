// Memory ordering, besides the ring's own edges (ring/queue/record_ring.h):
//   X  execute -> touch   a record's driver call returns before `executed` counts the record
//   R  reply -> read      the worker writes a reply's bytes before `reply_position`
// Covered by: the model order and the tests of tests/loopback/order.cc with a mutant (X), the explorer's scenario
// parking (R; docs/models.md), and ThreadSanitizer under tests/loopback (both).
#include "host/untrusted/channel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "host/untrusted/call_log.h"
#include "host/untrusted/callbacks/guest_waker.h"
#include "host/untrusted/dispatch.h"
#include "host/untrusted/launches/changes_launches.h"
#include "host/untrusted/launches/launch_chain.h"
#include "host/untrusted/marshal/captured.h"
#include "host/untrusted/marshal/shadowed.h"
#include "host/untrusted/submission.h"
#include "ring/api/call.h"
#include "ring/api/known_ids.h"
#include "ring/queue/parking.h"
#include "ring/queue/spin.h"

namespace host {
namespace {

using Clock = std::chrono::steady_clock;
using Control = ring::ChannelControl;

// One channel in the worker. The channel's thread creates, runs and ends this object.
class Channel {
 public:
  Channel(Session& session, std::uint32_t index)
      : session_(session),
        index_(index),
        control_(session.slot.control(index)),
        mailbox_(session.slot.reply(index)),
        consumer_(session.slot.requests(index)),
        worker_(control_[&Control::worker_asleep]),
        guest_(control_[&Control::guest_asleep], session.options.interrupt_fd),
        buffers_(new Buffers),
        log_(session.telemetry, index),
        watch_(session.long_waits, index),
        chain_(session),
        random_(index) {}

  void run(const std::atomic<bool>& stop) {
    become_relaxed(session_.driver);
    session_.memory.kept_graphs.channel_is_busy();
    while (!stop.load(std::memory_order_relaxed) && !session_.protocol.broken.load(std::memory_order_relaxed)) {
      std::span<const std::byte> record;
      switch (consumer_.take(buffers_->request.bytes, record)) {
        case ring::Peer::Ok: take(record); break;
        case ring::Peer::Wait:
          issue_all();
          wait(stop);
          break;
        case ring::Peer::Broken: session_.protocol.broken.store(true, std::memory_order_relaxed); break;
      }
    }
    session_.memory.kept_graphs.channel_is_idle();
  }

 private:
  struct alignas(16) Buffer {
    std::byte bytes[ring::max_record];
  };
  struct Buffers {
    Buffer request, reply;
  };

  void take(std::span<const std::byte> record) {
    ring::RecordHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    const Handler handler = handler_of(header.call);
    const bool well_formed = handler != nullptr && follows_protocol(header);
    if (well_formed && chain_.takes(header, record)) {
      if (!chain_.fits()) issue_all();
      chain_.add(header, record);
      while (chain_.is_due(consumer_.anything())) issue();
      if (chain_.empty()) chain_.issued();
      return;
    }
    issue_all();
    chain_.other_record();
    execute(record, header, well_formed ? handler : nullptr);
  }

  // Issues the launches that wait.
  void issue_all() {
    if (chain_.empty()) return;
    while (!chain_.empty()) issue();
    chain_.issued();
  }

  // Issues the first of the launches that wait: as many as a kept graph launches, or one.
  void issue() {
    const PendingLaunch& first = chain_.waiting().front();
    if (session_.contexts.make_current(ring::context_of(first.header.flags)) == CUDA_SUCCESS)
      if (const std::size_t launched = launch_graph(); launched != 0) return chain_.pop(launched);
    execute(first.record(), first.header, handler_of(first.header.call));
    chain_.pop(1);
  }

  std::size_t launch_graph() {
    const auto waiting = chain_.waiting();
    if (ring::wrong(ring::Mutant::executed_early)) set_executed(waiting.back().header.position);
    delay();
    log_.begin();
    watch_.begin(false);
    const std::size_t launched = chain_.launch_graph([&](std::size_t count) {
      if (!session_.gpu_use.is_scheduled()) return;
      for (std::size_t i = 0; i < count; ++i)
        session_.gpu_use.submitted(index_, ring::context_of(waiting[i].header.flags));
    });
    watch_.end();
    if (launched == 0) return 0;
    for (const PendingLaunch& launch : waiting.first(launched))
      log_.end(launch.header, CUDA_SUCCESS, launch.record(), {}, true);
    conclude_up_to(waiting[launched - 1].header.position);
    return launched;
  }

  // `handler`: null if the guest does not follow the protocol.
  void execute(std::span<const std::byte> record, const ring::RecordHeader& header, Handler handler) {
    const auto payload = record.subspan(sizeof header);
    Request request(session_, header, payload, {buffers_->reply.bytes, ring::reply_bytes}, &brought_name_);
    if (ring::wrong(ring::Mutant::executed_early)) set_executed(header.position);
    delay();
    log_.begin();
    const api::Manner manner = api::manner_of(header.call);
    Submission submission(index_, request, manner, payload);
    watch_.begin(manner.compiles);
    const CUresult result = handler != nullptr ? call(handler, request) : request.broken();
    watch_.end();
    note_change(header.call);
    submission.ended(result);
    request
        .charge
        // The objects that the call made now own the charged memory, and the guest's next call may need the rest.
        .let_go();
    if (manner.asks == api::Asks::Wait) session_.memory.pools.refresh();
    const std::span<const std::byte> reply{buffers_->reply.bytes, reply_length(request, result)};
    log_.end(request, result, record, reply, submission.submits() && result == CUDA_SUCCESS);
    if (session_.protocol.broken.load(std::memory_order_relaxed)) return;
    conclude(header, result, reply);
  }

  void note_change(std::uint16_t call) {
    switch (launch_change(call)) {
      case LaunchChange::None: break;
      case LaunchChange::Settings: session_.memory.kept_graphs.outdate(); break;
      case LaunchChange::Forbids: session_.memory.kept_graphs.forbid(); break;
    }
  }

  // Returns whether the guest follows the protocol: hello comes before all other calls, the flags are known, and record
  // numbers increase by one.
  bool follows_protocol(const ring::RecordHeader& header) {
    return (session_.protocol.greeted() || header.call == api::id_of::hello) &&
           (header.flags & ~ring::known_flags) == 0 && header.position == ++position_;
  }

  CUresult call(Handler handler, Request& request) {
    if (const CUresult r = session_.contexts.make_current(ring::context_of(request.header.flags)); r != CUDA_SUCCESS)
      return r;
    const CUresult result = session_.memory.shadow_copies.any() && !is_on_captured_stream(request)
                                ? call_shadowed(handler, request)  // see docs/design/027-managed-variables.md
                                : handler(request);
    session_.contexts.let_go_of_green();
    session_.note(result);
    return result;
  }

  static std::size_t reply_length(const Request& request, CUresult result) {
    return result == CUDA_SUCCESS ? request.out.used() : request.out_on_error;
  }

  void conclude(const ring::RecordHeader& header, CUresult result, std::span<const std::byte> reply) {
    if (header.flags & ring::flag_wants_reply) {
      session_.offer_output();  // ordered before R
      ring::count(log_.counters.waited);
      ring::count(log_.counters.reply_bytes, reply.size());
      mailbox_.copy_in(0, reply.data(), reply.size());
      control_[&Control::reply_length].store(static_cast<std::uint32_t>(reply.size()), std::memory_order_relaxed);
      control_[&Control::reply_result].store(static_cast<std::int32_t>(result), std::memory_order_relaxed);
      control_[&Control::reply_position].store(header.position, std::memory_order_release);  // edge R
    } else if (result != CUDA_SUCCESS) {
      session_.offer_output();  // ordered before X
      control_[&Control::deferred_result].store(result, std::memory_order_relaxed);
      // Ordered by X, as an effect of the record.
      control_[&Control::deferred_count].fetch_add(1, std::memory_order_release);
    }
    conclude_up_to(header.position);
  }

  // Publishes that the driver calls of all records up to this position have returned.
  void conclude_up_to(std::uint64_t position) {
    set_executed(position);
    // A guest thread that waits for the last of many records is not woken for the earlier records.
    const auto awaited = [&] { return position >= control_[&Control::guest_awaits].load(std::memory_order_relaxed); };
    if (guest_.wake(awaited)) ring::count(log_.counters.woken);
  }
  void set_executed(std::uint64_t position) {
    control_[&Control::executed].store(position, std::memory_order_release);  // edge X
  }

  // Polls for a while, then parks.
  void wait(const std::atomic<bool>& stop) {
    chain_.ring_is_empty();
    session_.memory.kept_graphs.channel_is_idle();
    poll_or_park(stop);
    session_.memory.kept_graphs.channel_is_busy();
  }

  void poll_or_park(const std::atomic<bool>& stop) {
    const auto start = Clock::now();
    const std::chrono::nanoseconds bound = std::chrono::microseconds(session_.options.spin_us);
    const auto polled = start + std::chrono::nanoseconds(spin_.share(static_cast<std::uint64_t>(bound.count())));
    do {
      for (int i = 0; i < 64; ++i) {
        if (consumer_.anything()) return ended_polling();
        __builtin_ia32_pause();
      }
    } while (Clock::now() < polled);
    park(stop);
    const std::chrono::nanoseconds waited = Clock::now() - start;
    spin_.ended_asleep(static_cast<std::uint64_t>(waited.count()), static_cast<std::uint64_t>(bound.count()));
  }

  // Even a channel that may not poll looks once. This look does not count as polling.
  void ended_polling() {
    if (session_.options.spin_us != 0) ring::count(log_.counters.spun);
    spin_.ended_polling();
  }

  // Sleeps as ring/queue/parking.h describes. The doorbell thread or the guest wakes this thread.
  void park(const std::atomic<bool>& stop) {
    if (!worker_.may_sleep([&] { return consumer_.anything() || stop.load(std::memory_order_relaxed); })) return;
    ring::count(log_.counters.parked);
    syscall(SYS_futex, worker_.word().futex_word(), FUTEX_WAIT, 1, nullptr, nullptr, 0);
    worker_.woke();
  }

  void delay() {
    if (session_.options.chaos_delay_us == 0) return;
    std::uniform_int_distribution<std::uint32_t> upto(0, session_.options.chaos_delay_us);
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(upto(random_)));
  }

  Session& session_;
  const std::uint32_t index_;
  const ring::Shared<Control> control_;
  const ring::SharedBytes mailbox_;
  ring::Consumer consumer_;
  ring::Parking worker_;
  GuestWaker guest_;
  ring::AdaptiveSpin spin_;
  std::unique_ptr<Buffers> buffers_;
  std::string brought_name_;
  std::uint64_t position_ = 0;
  CallLog log_;
  WaitWatch watch_;
  LaunchChain chain_;
  std::minstd_rand random_;
};

}  // namespace

void serve_channel(Session& session, std::uint32_t channel, const std::atomic<bool>& stop) {
  Channel(session, channel).run(stop);
}

}  // namespace host
