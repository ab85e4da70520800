#include "host/session/long_waits.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace host {
namespace {

constexpr std::uint32_t tick_ms = 4;  // a tick of the thread's processor time, which Linux counts in steps of 1 to 4 ms
constexpr std::int64_t shortest_pause = 1, longest_pause = 50;  // milliseconds
constexpr std::int64_t pause_share = 8;                         // a pause is 1/8 of the call's time so far
constexpr std::uint64_t working_calls = 500;  // factor on the patience for calls in which a compiler may run

static_assert(ring::max_channels <= 1 << 8);

// A signal that C libraries, sanitizers and profilers do not use.
int tick_signal() { return SIGRTMIN + 9; }

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

bool LongWaits::may_go_on(std::uint32_t channel) {
  const std::uint64_t mine = steps_[channel].load(std::memory_order_relaxed) << 8 | channel;
  std::uint64_t holder = goes_on_.load(std::memory_order_relaxed);
  do {
    if (holder == mine) return true;
    const bool still =
        holder != nobody && steps_[holder & 255].load(std::memory_order_relaxed) << 8 == (holder & ~255ull);
    if (still) return false;
  } while (!goes_on_.compare_exchange_weak(holder, mine, std::memory_order_relaxed));
  return true;
}

bool LongWaits::is_off() const {
  const auto off = [](const ring::DeviceOrders& one) { return one.off.load(std::memory_order_relaxed) != 0; };
  return !orders_.empty() && std::ranges::all_of(orders_, off);
}

void LongWaits::sleep_while_off() {
  const timespec longest{0, longest_pause * 1'000'000};
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  const int before = errno;  // errno belongs to the interrupted code
  syscall(SYS_futex, &orders_.front().off, FUTEX_WAIT, 1, &longest, nullptr, 0);
  errno = before;
}

WaitWatch::WaitWatch(LongWaits& waits, std::uint32_t channel) : waits_(waits), channel_(channel) {
  if (waits_.watches()) set_timer();
}

WaitWatch::~WaitWatch() {
  if (timer_) timer_delete(*timer_);
}

// Installs the process-wide signal handler. A second call changes nothing.
void WaitWatch::set_handler() {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    // Only a timer's signal carries a WaitWatch pointer.
    if (info->si_code == SI_TIMER) static_cast<WaitWatch*>(info->si_value.sival_ptr)->on_tick();
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(tick_signal(), &action, nullptr);
}

void WaitWatch::set_timer() {
  set_handler();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick_signal();
  event.sigev_value.sival_ptr = this;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_t timer{}; timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0) timer_ = timer;
  itimerspec every{};
  every.it_value.tv_nsec = every.it_interval.tv_nsec = tick_ms * 1'000'000;
  if (!timer_ || timer_settime(*timer_, 0, &every, nullptr) != 0)
    std::fprintf(stderr, "ivgpu-worker: a channel's waits in the driver have no bound: %s\n", std::strerror(errno));
}

void WaitWatch::on_tick() {
  const std::uint64_t now = waits_.steps_[channel_].load(std::memory_order_relaxed);
  const bool works = works_.load(std::memory_order_relaxed);
  if (now % 2 != 0 && !works && waits_.is_off()) return waits_.sleep_while_off();
  if (now != seen_ || now % 2 == 0) {
    seen_ = now;
    ticks_ = 0;
    return;
  }
  if (ticks_ == 0) begun_ms_ = now_ms();
  const std::uint64_t busy_ms = std::uint64_t{++ticks_} * tick_ms;
  const std::uint64_t times = works ? working_calls : 1;
  if (waits_.patience_ms() == 0 || busy_ms < waits_.patience_ms() * times || waits_.may_go_on(channel_)) return;
  const std::int64_t pause = std::clamp((now_ms() - begun_ms_) / pause_share, shortest_pause, longest_pause);
  const timespec time{0, pause * 1'000'000};
  waits_.pauses_.fetch_add(1, std::memory_order_relaxed);
  const int before = errno;  // errno belongs to the interrupted code
  nanosleep(&time, nullptr);
  errno = before;
}

}  // namespace host
