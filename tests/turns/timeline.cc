#include "tests/turns/timeline.h"

#include <algorithm>

namespace turns_world {

bool Timeline::later(const Entry& a, const Entry& b) { return a.when != b.when ? a.when > b.when : a.made > b.made; }

void Timeline::at(Time when, Event event) {
  events_.push_back({std::max(when, now_), made_++, std::move(event)});
  std::push_heap(events_.begin(), events_.end(), later);
}

void Timeline::run_until(Time end) {
  while (!events_.empty() && events_.front().when <= end) {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Entry next = std::move(events_.back());
    events_.pop_back();
    now_ = next.when;
    next.event();
  }
  now_ = end;
}

}  // namespace turns_world
