#include "host/broker/worker/worker_output.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace host::broker {
namespace {

// Enough for a driver's diagnostics, and too little to fill a disk or keep the broker busy.
constexpr int lines_per_second = 50;
constexpr std::size_t output_budget = 64 << 10;  // bytes read per wake-up: the capacity of a pipe

}  // namespace

WorkerOutput::WorkerOutput(EventLoop& loop, Fd pipe, std::string label, WorkerLog& log)
    : loop_(loop), pipe_(std::move(pipe)), label_(std::move(label)), log_(log), lines_left_(lines_per_second) {}

WorkerOutput::~WorkerOutput() { stop_reading(); }

void WorkerOutput::watch() {
  watch_ = loop_.watch(pipe_.get(), POLLIN, [this](short) { on_readable(); });
}

void WorkerOutput::stop_reading() {
  loop_.forget(watch_);
  loop_.forget(timer_);
}

void WorkerOutput::finish() {
  stop_reading();
  lines_left_ = lines_per_second;
  read_lines(output_budget);
  for (const std::string& line : lines_.finish()) log_line(line);
}

void WorkerOutput::on_readable() {
  if (timer_ == 0 && lines_left_ == lines_per_second) {
    timer_ = loop_.after(std::chrono::seconds(1), [this] {
      timer_ = 0;
      lines_left_ = lines_per_second;
    });
  }
  read_lines(output_budget);
  if (lines_left_ > 0 || watch_ == 0) return;
  pause();
}

void WorkerOutput::read_lines(std::size_t budget) {
  std::array<char, 4096> bytes;
  while (budget > 0) {
    const ssize_t length = read(pipe_.get(), bytes.data(), std::min(bytes.size(), budget));
    if (length == 0) loop_.forget(watch_);
    if (length <= 0) return;
    budget -= static_cast<std::size_t>(length);
    for (const std::string& line : lines_.add({bytes.data(), static_cast<std::size_t>(length)})) log_line(line);
    if (lines_left_ <= 0) return;
  }
}

// A worker has no share of the log left when its VM's share is used up. Lines already read are then dropped, except as
// last words.
void WorkerOutput::log_line(const std::string& line) {
  last_words_ = line;
  if (lines_left_ > 0 && log_.lines.take(Clock::now()) != Span::zero()) lines_left_ = 0;
  if (lines_left_ <= 0) return void(++lines_left_out_);
  --lines_left_;
  if (const auto n = std::exchange(lines_left_out_, 0); n != 0) spdlog::info("{}: ({} lines were left out)", label_, n);
  spdlog::info("{}: {}", label_, line);
}

// Stops reading a worker that prints too much until the second is over: its pipe fills, and it blocks.
void WorkerOutput::pause() {
  stop_reading();
  timer_ = loop_.after(std::chrono::seconds(1), [this] {
    timer_ = 0;
    lines_left_ = lines_per_second;
    watch();
  });
}

}  // namespace host::broker
