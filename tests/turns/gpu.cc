#include "tests/turns/gpu.h"

namespace turns_world {
namespace {

using namespace std::chrono_literals;

constexpr Time linger = 6us, change = 129600ns;
constexpr Time slice = 2ms;

}  // namespace

SharedGpu::Process SharedGpu::add(std::function<void()> kernel_done) {
  queues_.push_back({{}, std::move(kernel_done)});
  return queues_.size() - 1;
}

void SharedGpu::submit(Process process, Time kernel) {
  queues_[process].kernels.push_back(kernel);
  if (state_ == State::Idle && process != resident_) return change_to(process, linger + change);
  if (state_ == State::Idle || (state_ == State::Lingering && process == resident_)) return choose();
  if (state_ == State::Running && process != resident_) plan();
}

void SharedGpu::copy(Time takes, std::function<void()> done) {
  copier_free_ = std::max(copier_free_, timeline_.now()) + takes;
  timeline_.at(copier_free_, std::move(done));
}

void SharedGpu::go_on() {
  switch (state_) {
    case State::Lingering: return change_to(next_with_work(), change);
    case State::Changing:
      resident_ = coming_;
      slice_end_ = timeline_.now() + slice;
      return choose();
    default: end_run(); return choose();
  }
}

void SharedGpu::end_run() {
  Queue& queue = queues_[resident_];
  const Time ran = timeline_.now() - began_;
  busy_ += ran;
  queue.kernels.front() -= ran;
  if (queue.kernels.front() > Time::zero()) return;  // the slice has ended
  queue.kernels.pop_front();
  state_ = State::Between;  // what it calls may submit
  queue.kernel_done();
}

void SharedGpu::choose() {
  const bool others = others_have_work();
  if (!queues_[resident_].kernels.empty() && (timeline_.now() < slice_end_ || !others)) {
    state_ = State::Running;
    began_ = timeline_.now();
    return plan();
  }
  if (!others) {
    state_ = State::Idle;
  } else if (!queues_[resident_].kernels.empty()) {
    change_to(next_with_work(), linger + change);
  } else {
    state_ = State::Lingering;
    alarm_.set(timeline_.now() + linger);
  }
}

void SharedGpu::change_to(Process process, Time takes) {
  state_ = State::Changing;
  coming_ = process;
  ++changes_;
  alarm_.set(timeline_.now() + takes);
}

// When the kernel that runs ends, or the slice, if somebody waits for that.
void SharedGpu::plan() {
  const Time end = began_ + queues_[resident_].kernels.front();
  if (!others_have_work()) return alarm_.set(end);
  while (slice_end_ <= timeline_.now()) slice_end_ += slice;  // it was alone
  alarm_.set(std::min(end, slice_end_));
}

bool SharedGpu::others_have_work() const {
  for (Process p = 0; p < queues_.size(); ++p)
    if (p != resident_ && !queues_[p].kernels.empty()) return true;
  return false;
}

// Precondition: another than the resident has work.
SharedGpu::Process SharedGpu::next_with_work() const {
  Process p = resident_;
  do p = (p + 1) % queues_.size();
  while (queues_[p].kernels.empty());
  return p;
}

}  // namespace turns_world
