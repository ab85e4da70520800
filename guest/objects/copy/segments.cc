#include "guest/objects/copy/segments.h"

#include <algorithm>
#include <utility>

#include "ring/layout/layout.h"

namespace guest {
namespace {

// bytes; registering costs a waited call, so one registration covers many blocks
constexpr std::uint64_t pin_step = 32 << 20;

constexpr std::uint64_t whole_pages(std::uint64_t n) {
  return (n + ring::huge_page - 1) / ring::huge_page * ring::huge_page;
}

}  // namespace

using State = Segments::Segment::State;

Segments::Segments(std::uint64_t start, std::uint64_t first_end, std::uint64_t end, bool may_join, Ask ask)
    : segments_{{start, first_end, State::Registered}}, may_join_(may_join), ask_(std::move(ask)) {
  if (first_end < end) segments_.push_back({first_end, end, State::Free});
}

bool Segments::add_room(std::uint64_t bytes, const IsEmpty& is_empty) {
  const auto asked = std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) {
    return s.state == State::Asked || s.state == State::AskedToJoin;
  });
  // The worker refuses overlapping ranges. If the outcome of an earlier request is unknown, the same range is therefore
  // requested again first.
  if (asked != segments_.end())
    return resolve(static_cast<std::size_t>(asked - segments_.begin())) != Registered::Unknown;
  Registered done = register_free(bytes);
  if (done == Registered::No) done = join(bytes, is_empty);
  return done == Registered::Yes;
}

// Registers free space for a block: at least pin_step bytes, if that much is free.
Segments::Registered Segments::register_free(std::uint64_t bytes) {
  const std::uint64_t least = whole_pages(bytes);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment room = segments_[i];
    if (room.state != State::Free || room.bytes() < least) continue;
    for (const std::uint64_t size : {std::min(room.bytes(), std::max(least, pin_step)), least}) {
      replace(i, i, room.start + size, State::Asked);
      const Registered done = resolve(i);
      if (done != Registered::No) return done;
    }
  }
  return Registered::No;
}

Segments::Registered Segments::join(std::uint64_t bytes, const IsEmpty& is_empty) {
  Run run{};
  if (!may_join_ || !find_run(whole_pages(bytes), is_empty, run)) return Registered::No;
  replace(run.first, run.last, run.end, State::AskedToJoin);
  return resolve(run.first);
}

// Returns whether segment i may be joined with other segments. The first segment may not: it shares a registration with
// the staging chunks, which may be in use at any time.
bool Segments::can_move(std::size_t i, const IsEmpty& is_empty) const {
  const Segment& s = segments_[i];
  return i != 0 && (s.state == State::Free || (s.registered() && is_empty(s.start, s.end)));
}

// Finds the shortest run of neighbouring segments without blocks that has `bytes`. If the run's last segment is free,
// the run takes only the bytes that it needs.
bool Segments::find_run(std::uint64_t bytes, const IsEmpty& is_empty, Run& best) const {
  std::uint64_t shortest = 0;
  for (std::size_t first = 1; first < segments_.size(); ++first) {
    for (std::size_t last = first; last < segments_.size() && can_move(last, is_empty); ++last) {
      const std::uint64_t start = segments_[first].start;
      if (segments_[last].end - start < bytes) continue;
      const std::uint64_t end = segments_[last].state == State::Free ? start + bytes : segments_[last].end;
      if (shortest == 0 || end - start < shortest) best = {first, last, end}, shortest = end - start;
      break;
    }
  }
  return shortest != 0;
}

std::uint64_t Segments::largest_room(const IsEmpty& is_empty) const {
  std::uint64_t largest = 0, run = 0;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const bool counts = may_join_ ? can_move(i, is_empty) : segments_[i].state == State::Free;
    run = counts ? run + segments_[i].bytes() : 0;
    largest = std::max(largest, run);
  }
  return largest;
}

// Sends the request for segment i that the segment's state demands, and stores the outcome in the state.
Segments::Registered Segments::resolve(std::size_t i) {
  Segment& s = segments_[i];
  const Registered done = ask_(s.start, s.end, s.state == State::AskedToJoin);
  if (done == Registered::Unknown) return done;
  s.state = done == Registered::Yes ? State::Registered : State::Free;
  merge_free();
  return done;
}

// Replaces the segments [first, last] by one segment that ends at `end`. The remainder of segment `last` becomes free.
void Segments::replace(std::size_t first, std::size_t last, std::uint64_t end, Segment::State state) {
  const Segment made{segments_[first].start, end, state}, rest{end, segments_[last].end, State::Free};
  const auto at = segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(first),
                                  segments_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  const auto placed = segments_.insert(at, made);
  if (rest.bytes() != 0) segments_.insert(placed + 1, rest);
}

void Segments::merge_free() {
  for (std::size_t i = 1; i < segments_.size();)
    if (segments_[i - 1].state == State::Free && segments_[i].state == State::Free)
      replace(i - 1, i, segments_[i].end, State::Free);
    else
      ++i;
}

}  // namespace guest
