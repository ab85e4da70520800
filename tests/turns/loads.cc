#include "tests/turns/loads.h"

namespace turns_world {

using namespace std::chrono_literals;

constexpr unsigned hiccup_each = 50;  // pieces

// The numbers are from shared/facts/h200-baseline.md: an empty launch takes 3.5 us of the processor and 1.4 us of the
// GPU; launch and wait alone takes 8.9 us, of which a wait's return is 3.6 (worker.cc). A kernel that was to take 500
// or 100 us took 453 and 91: with these the figures of its table come out to within 3 percent.
Load launch_and_wait() {
  return {.name = "launch and wait", .kernel = 1400ns, .issue = 200ns, .cost = 3500ns, .think = 200ns};
}

Load burst(int kernels, Time kernel) {
  const auto us = std::to_string((kernel.count() + 500) / 1000);
  return {.name = std::to_string(kernels) + " of " + us + " us and a wait",
          .kernels = kernels,
          .kernel = kernel,
          .issue = 200ns,
          .cost = 3500ns,
          .think = 200ns};
}

Load long_kernels() {
  return {
      .name = "4 of 0.5 ms and a wait", .kernels = 4, .kernel = 453us, .issue = 200ns, .cost = 3500ns, .think = 200ns};
}

// Eager PyTorch's step of a small transformer, 240 a second alone. How much of a step the GPU works is not measured:
// 0.8 ms let two, four, and one beside products come out as they did. 40 percent of a step would not leave time for the
// 171 to 201 steps a second of four.
Load trainer() {
  return {.name = "trains",
          .kernels = 400,
          .kernel = 2050ns,
          .issue = 10300ns,
          .cost = 3500ns,
          .think = 20us,
          .varies = .1};
}

// The same net's inference, 0.85 ms. Beside a trainer it takes no longer, and beside products only as if it went to the
// GPU once: so its kernels follow each other closely enough that the GPU stays with it (SharedGpu's `linger`), as a
// trainer's do not. Its 99th percentile, 1.25 ms, is a hiccup now and then.
Load inference() {
  return {.name = "infers every 10 ms",
          .kernels = 120,
          .kernel = 1300ns,
          .issue = 6900ns,
          .cost = 3500ns,
          .every = 10ms,
          .varies = .05,
          .hiccup = 400us};
}

// 799 a second; posted without a wait, so that the driver's queue is full.
Load products() { return {.name = "large products", .kernel = 1250us, .issue = 5us, .cost = 3500ns, .waits = false}; }

// 312 us for 16 MiB, by a call that returns when it is done.
Load copies() { return {.name = "copies", .kernel = 310us, .issue = 200ns, .cost = 2us, .copies = true, .think = 1us}; }

Program::Program(const Place& place, Load load, std::uint32_t seed, std::function<void()> requested)
    : timeline_(place.timeline),
      load_(std::move(load)),
      random_(seed),
      worker_(
          place.timeline, place.gpu,
          {.replied = [this] { end_piece(); }, .room = [this] { if_blocked(); }, .requested = std::move(requested)}) {}

void Program::begin_piece() {
  if (paused_) {
    stopped_ = true;
    return;
  }
  began_ = timeline_.now();
  left_ = load_.kernels;
  const bool hiccup = load_.hiccup > Time::zero() && random_() % hiccup_each == 0;
  timeline_.after(hiccup ? load_.hiccup : Time::zero(), [this] { issue(); });
}

void Program::issue() {
  timeline_.after(varied(load_.issue), [this] { post(); });
}

void Program::post() {
  blocked_ = !worker_.has_room();
  if (blocked_) return;
  if (left_ == 0) return worker_.post({Record::Kind::Wait, {}, {}});
  if (load_.copies) return worker_.post({Record::Kind::Copy, load_.kernel, load_.cost});
  --left_;
  worker_.post({Record::Kind::Launch, load_.kernel, load_.cost});
  if (left_ > 0) return issue();
  load_.waits ? post() : begin_piece();
}

void Program::if_blocked() {
  if (blocked_) post();
}

void Program::end_piece() {
  pieces_.push_back(timeline_.now() - began_);
  const Time next = std::max(timeline_.now() + varied(load_.think), began_ + varied(load_.every));
  timeline_.at(next, [this] { begin_piece(); });
}

void Program::resume() {
  paused_ = false;
  if (stopped_) begin_piece();
  stopped_ = false;
}

Time Program::varied(Time time) {
  if (load_.varies == 0) return time;
  std::uniform_real_distribution<double> factor(1 - load_.varies, 1 + load_.varies);
  return std::chrono::duration_cast<Time>(time * factor(random_));
}

}  // namespace turns_world
