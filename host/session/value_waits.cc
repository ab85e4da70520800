#include "host/session/value_waits.h"

#include <algorithm>

#include "host/session/session.h"

namespace host {
namespace {

bool is_done(const Driver& driver, CUevent event) { return driver.cuEventQuery(event) != CUDA_ERROR_NOT_READY; }

}  // namespace

ValueWaits::~ValueWaits() {
  for (auto& [place, queue] : waits_)
    for (const Wait& wait : queue)
      for (const CUevent event : {wait.before, wait.behind}) spare_[std::get<0>(place)].push_back(event);
  for (const auto& [context, events] : spare_) {
    if (session_.contexts.make_current(context) != CUDA_SUCCESS) continue;
    for (const CUevent event : events) session_.driver.cuEventDestroy_v2(event);
    session_.contexts.let_go_of_green();
  }
}

// ---- a channel -----------------------------------------------------------------------------------------------------

// The wait is noted before it is made: who looks in between sees that something is coming. A record may wait for room in the
// stream's queue for as long as the stream stands, so no lock is held then.
ValueWaits::Mark::Mark(ValueWaits& waits, unsigned context, std::uint32_t channel, CUstream stream)
    : waits_(waits), place_(context, stream, stream == CU_STREAM_PER_THREAD ? channel : 0) {
  const Wait wait = waits.note(place_);
  behind_ = wait.behind;
  if (behind_ != nullptr) waits.session_.driver.cuEventRecord(wait.before, stream);
}

// The context may have ended meanwhile, by another channel's call.
ValueWaits::Mark::~Mark() {
  if (behind_ == nullptr || !waits_.is_noted(place_, behind_)) return;
  waits_.session_.driver.cuEventRecord(behind_, std::get<CUstream>(place_));
  const std::lock_guard lock(waits_.mutex_);
  if (Wait* const wait = waits_.find(place_, behind_)) wait->made = true;
}

// Without events: there are too many already.
ValueWaits::Wait ValueWaits::note(const Place& place) {
  const unsigned context = std::get<0>(place);
  const auto alive = session_.making();
  const std::lock_guard lock(mutex_);
  Queue& queue = waits_[place];
  drop_passed(context, queue);
  Wait wait;
  if (count_.load(std::memory_order_relaxed) >= most || !take_events(context, wait)) return {};
  queue.push_back(wait);
  count(context, 1);
  return wait;
}

bool ValueWaits::is_noted(const Place& place, CUevent behind) {
  const std::lock_guard lock(mutex_);
  return find(place, behind) != nullptr;
}

// Under mutex_. Null: nothing is known of this wait any more.
ValueWaits::Wait* ValueWaits::find(const Place& place, CUevent behind) {
  const auto queue = waits_.find(place);
  if (queue == waits_.end()) return nullptr;
  const auto wait = std::ranges::find(queue->second, behind, &Wait::behind);
  return wait == queue->second.end() ? nullptr : &*wait;
}

bool ValueWaits::take_events(unsigned context, Wait& wait) {
  std::vector<CUevent>& spare = spare_[context];
  while (spare.size() < 2) {
    CUevent made = nullptr;
    if (session_.driver.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
    spare.push_back(made);
  }
  for (CUevent* const event : {&wait.before, &wait.behind}) *event = spare.back(), spare.pop_back();
  return true;
}

ValueWaits::StreamEnd::StreamEnd(ValueWaits& waits, CUstream stream) : waits_(waits), stream_(stream) {
  const std::lock_guard lock(waits_.mutex_);
  waits_.ending_.insert(stream_);
}

ValueWaits::StreamEnd::~StreamEnd() {
  const std::lock_guard lock(waits_.mutex_);
  waits_.ending_.erase(stream_);
}

void ValueWaits::forget(unsigned context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waits_, [&](const auto& one) {
    if (std::get<0>(one.first) != context) return false;
    count(context, 0 - one.second.size());
    return true;
  });
  spare_.erase(context);
}

// ---- who asks ------------------------------------------------------------------------------------------------------

void ValueWaits::drop_passed(unsigned context, Queue& queue) {
  for (; !queue.empty() && queue.front().made && is_done(session_.driver, queue.front().behind); queue.pop_front()) {
    for (const CUevent event : {queue.front().before, queue.front().behind}) spare_[context].push_back(event);
    count(context, 0 - std::size_t{1});
  }
}

// Precondition: nothing in front has been passed.
bool ValueWaits::stands(Queue& queue) { return queue.front().made && is_done(session_.driver, queue.front().before); }

ValueWaits::Found ValueWaits::look(unsigned context) {
  const std::lock_guard lock(mutex_);
  Found found = Found::NoWaits;
  for (auto& [place, queue] : waits_) {
    if (std::get<0>(place) != context) continue;
    drop_passed(context, queue);
    if (queue.empty()) continue;
    if (!stands(queue)) return Found::Before;
    found = Found::Stand;
  }
  std::erase_if(waits_, [](const auto& one) { return one.second.empty(); });
  return found == Found::Stand && !are_others_idle(context) ? Found::Beside : found;
}

// The legacy stream answers for the blocking ones and for threads' own, unless one of these stands: then so does it.
bool ValueWaits::are_others_idle(unsigned context) {
  const auto is_idle = [&](CUstream stream) { return session_.driver.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY; };
  if (!is_idle(CU_STREAM_LEGACY)) return false;
  return std::ranges::all_of(session_.objects.handles_in(context, api::Handle::Stream), [&](void* handle) {
    const auto stream = static_cast<CUstream>(handle);
    return ending_.contains(stream) || waits_.contains({context, stream, 0}) || is_idle(stream);
  });
}

}  // namespace host
