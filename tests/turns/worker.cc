#include "tests/turns/worker.h"

namespace turns_world {
namespace {

using ring::GrantMode;
using namespace std::chrono_literals;

constexpr Time polls_for = 50us, woken_polls_for = 250us;  // this and the next as in host/session/turns.cc
constexpr std::chrono::microseconds quiet_as_always = 10us;
constexpr Time wait_returns = 3600ns;  // after the last kernel's end, to the guest
constexpr Time channel_sees = 1us, keeper_sees = 2us, wake = 30us;
constexpr Time sampler_sees = 500us, longest_drain = 20ms;

}  // namespace

Worker::Worker(Timeline& timeline, SharedGpu& gpu, Listeners listeners)
    : timeline_(timeline),
      gpu_(gpu),
      listeners_(std::move(listeners)),
      process_(gpu.add([this] { kernel_done(); })),
      half_alarm_(timeline, [this] { half_done(); }),
      quiet_alarm_(timeline, [this] { quiet(); }),
      watch_alarm_(timeline, [this] { end_watch(false); }) {}

// ---- the channel ---------------------------------------------------------------------------------------------------

void Worker::post(Record record) {
  ring_.push_back(record);
  serve();
}

void Worker::serve() {
  if (serving_ || ring_.empty()) return;
  serving_ = true;
  switch (ring_.front().kind) {
    case Record::Kind::Launch: return enter();
    case Record::Kind::Copy: return copy();
    case Record::Kind::Wait: return wait();
  }
}

void Worker::enter() {
  if (!may_enter()) {
    end_busy();
    if (request_.waits_for_turn) return;
    request_.waits_for_turn = true;
    gate_began_ = timeline_.now();
    polls_until_ = gate_began_ + polls_for;
    if (keeper_ == Keeper::Watching) end_watch(true);
    return listeners_.requested();
  }
  if (request_.waits_for_turn) {
    request_.waits_for_turn = false;
    queue_.forget();
    waits_for_turn_.push_back(timeline_.now() - gate_began_);
    listeners_.requested();
  }
  if (grant_.mode == GrantMode::Turn && batch_.is_full(most_under_way_)) return await_batch();
  // Kernels of one length are taken for one kernel.
  const auto kind = static_cast<std::uint32_t>(ring_.front().takes.count());
  if (grant_.mode == GrantMode::Turn) batch_.submitted(kind, most_under_way_);
  if (must_await_half()) return;
  inside_gate_ = true;
  work();
}

bool Worker::may_enter() {
  if (grant_.mode == GrantMode::Turn) return grant_.number != withdrawn_;
  return grant_.mode != GrantMode::Closed;
}

// Outside of the gate. The keeper waits for the work, and looks after 2 us.
void Worker::await_batch() {
  waits_for_batch_ = true;
  wait_began_ = timeline_.now();
  timeline_.after(keeper_sees, [this] { if_idle(); });
}

bool Worker::must_await_half() {
  if (!grant_.shallow) {
    queue_.forget();
    return false;
  }
  if (queue_.is_asked() && finished_ >= half_ends_) queue_.done(timeline_.now() - half_asked_, false);
  if (queue_.should_ask()) {
    queue_.asked();
    half_ends_ = submitted_;
    half_asked_ = timeline_.now();
  }
  waits_for_half_ = queue_.is_full();
  if (!waits_for_half_) {
    queue_.submitted();
    return false;
  }
  begin_busy();
  half_alarm_.set(timeline_.now() + (finished_ >= half_ends_ ? sampler_sees : longest_drain));
  return true;
}

void Worker::half_done() {
  half_alarm_.call_off();
  waits_for_half_ = false;
  if (grant_.shallow) queue_.done(timeline_.now() - half_asked_, true);
  enter();
}

// While the keeper would find the channel in a call. It looks under a watched grant alone, so nothing counts while the gate
// is closed.
void Worker::begin_busy() {
  if (!busy_since_ && grant_.watched) busy_since_ = timeline_.now();
}

void Worker::go_on_busy() {
  if (!grant_.watched) return end_busy();
  const bool in_a_copy = in_call_ && ring_.front().kind == Record::Kind::Copy;
  if ((in_call_ && !in_a_copy) || waits_for_half_) begin_busy();
}

void Worker::end_busy() {
  request_.busy_ns = request().busy_ns;
  busy_since_.reset();
}

host::turns::Request Worker::request() const {
  host::turns::Request request = request_;
  if (busy_since_) request.busy_ns += static_cast<std::uint64_t>((timeline_.now() - *busy_since_).count());
  return request;
}

void Worker::batch_done() {
  waits_for_batch_ = false;
  const Time took = timeline_.now() - wait_began_;
  if (grant_ == keeps_)
    batch_.finished(took, most_under_way_);
  else
    batch_.ended(took, most_under_way_);
  enter();
}

// Inside of the gate.
void Worker::work() {
  ++request_.submitted;
  if (grant_.mode == GrantMode::Told && told_ != grant_.number) {
    told_ = grant_.number;
    listeners_.requested();
  }
  begin_call();
  launch();
}

void Worker::launch() {
  timeline_.after(ring_.front().cost, [this] {
    if (gpu_.under_way(process_) < SharedGpu::depth) return submit();
    waits_for_room_ = true;  // in the driver
  });
}

void Worker::submit() {
  gpu_.submit(process_, ring_.front().takes);
  ++submitted_;
  inside_gate_ = false;
  end_call();
  try_to_give_back();
  finish();
}

// Large, so it passes no gate. The call returns when the copy is done, and does not count as a wait.
void Worker::copy() {
  begin_call();
  gpu_.copy(ring_.front().cost + ring_.front().takes, [this] {
    ++done_;
    end_call();
    finish();
    listeners_.replied();
  });
}

void Worker::wait() {
  begin_call();
  waits_for_idle_ = true;
  request_.under_way = true;
  wait_began_ = timeline_.now();
  if_idle();
}

void Worker::waited() {
  const Time took = timeline_.now() - wait_began_;
  batch_.waited(took, most_under_way_);
  ++request_.waits;
  request_.under_way = false;
  request_.waited_ns += static_cast<std::uint64_t>(took.count());
  end_call();
  finish();
  listeners_.replied();
}

void Worker::finish() {
  const bool was_full = !has_room();
  ring_.pop_front();
  serving_ = false;
  if (was_full) listeners_.room();
  serve();
}

void Worker::kernel_done() {
  ++done_;
  if (++finished_ == half_ends_ && waits_for_half_) half_alarm_.set(timeline_.now() + sampler_sees);
  if (waits_for_room_) {
    waits_for_room_ = false;
    return submit();
  }
  if_idle();
}

// Whoever waits for the process's work goes on when it is done.
void Worker::if_idle() {
  if (gpu_.under_way(process_) > 0) return;
  try_to_give_back();
  if (waits_for_batch_) return batch_done();
  if (!waits_for_idle_) return;
  waits_for_idle_ = false;
  timeline_.after(wait_returns, [this] { waited(); });
}

// The steps of LongWaits, which the keeper looks at.
void Worker::begin_call() {
  in_call_ = true;
  if (ring_.front().kind != Record::Kind::Copy) begin_busy();
  last_step_ = timeline_.now();
  if (keeper_ == Keeper::Watching) end_watch(true);
}

void Worker::end_call() {
  in_call_ = false;
  end_busy();
  last_step_ = timeline_.now();
  if (keeper_ == Keeper::Holding) expect_quiet();
}

// ---- grants, and the keeper ----------------------------------------------------------------------------------------

void Worker::give(ring::Grant grant, Time most_under_way) {
  most_under_way_ = most_under_way;
  grant_ = grant;
  go_on_busy();
  if (waits_for_half_) half_alarm_.set(timeline_.now() + channel_sees);
  if (request_.waits_for_turn) {
    const bool polls = timeline_.now() < polls_until_;
    timeline_.after(polls ? channel_sees : wake, [this] {
      polls_until_ = timeline_.now() + woken_polls_for;
      if (request_.waits_for_turn) enter();
    });
  }
  timeline_.after(keeper_ == Keeper::Asleep ? wake : keeper_sees, [this] { keeper_looks(); });
}

void Worker::keeper_looks() {
  if (keeps_ == grant_) return;
  if (keeper_ == Keeper::Watching) end_watch(true);
  keeps_ = grant_;
  switch (grant_.mode) {
    case GrantMode::Turn:
      keeper_ = Keeper::Holding;
      holds_since_ = timeline_.now();
      return expect_quiet();
    case GrantMode::Closed: keeper_ = Keeper::Ending; return try_to_give_back();
    default: keeper_ = Keeper::Asleep;
  }
}

void Worker::expect_quiet() {
  if (!quiet_alarm_.is_set()) quiet_alarm_.set(std::max(last_step_, holds_since_) + patience_.now(quiet_as_always));
}

void Worker::quiet() {
  if (keeper_ != Keeper::Holding || grant_ != keeps_ || in_call_) return;  // the call's end comes here again
  const Time since = std::max(last_step_, holds_since_);
  if (timeline_.now() - since < patience_.now(quiet_as_always)) return expect_quiet();
  if (inside_gate_ || waits_for_batch_) return;  // a call follows
  withdrawn_ = keeps_.number;
  keeper_ = Keeper::Giving;
  try_to_give_back();
}

// When a turn has ended, or is given back early, and nothing of the process is under way any more.
void Worker::try_to_give_back() {
  const bool ended = keeper_ == Keeper::Ending && !inside_gate_ && grant_ == keeps_;
  if ((!ended && keeper_ != Keeper::Giving) || gpu_.under_way(process_) > 0) return;
  request_.given_back = keeps_.number;
  keeper_ = ended ? Keeper::Asleep : Keeper::Watching;
  if (!ended) watch_alarm_.set(timeline_.now() + ring::TurnPatience::longest);
  listeners_.requested();
}

void Worker::end_watch(bool came_back) {
  watch_alarm_.call_off();
  came_back ? patience_.came_back() : patience_.stayed_away();
  keeper_ = Keeper::Asleep;
}

}  // namespace turns_world
