// Queries of, and waits for, what is known to be done are answered here and not through the ring.
//
// What a query or a wait has found done stays done until something is posted to it. So what was posted to it last is
// read before the call is sent, and kept when the call succeeds: as long as nothing else was posted to it since, the
// answer is known. A post by another thread meanwhile shows afterwards, as another last use. The NULL stream and the
// context are done when everything is: what counts there is how many records all channels have sent.
//
// A wait that was given up has found nothing, so nothing is kept of it. Where several uses are remembered
// (guest/objects/last_use.h), the word no longer tells one post from the next, so nothing is known either.
//
// Errors are not lost: a fault of the context is looked for at every call, and while an error of a posted call waits to
// be told nothing is answered here.
#pragma once

#include <optional>

#include "guest/marshal/order.h"
#include "guest/switches.h"
#include "ring/api/call.h"

namespace guest {

using api::Asks;

class DoneQuestion {
 public:
  // About a stream or an event.
  DoneQuestion(Asks asks, Object& object) : asks_(asks), known_(object.done), state_(object.last_use.now()) {}
  // About all that was sent: for the NULL stream or for the context.
  DoneQuestion(Asks asks, KnownDone& known) : asks_(asks), known_(known), state_(sent()), everything_(true) {}

  bool answered() const {
    const auto& word = asks_ == Asks::Query ? known_.for_queries : known_.for_waits;
    return switches().known_done && !untold() && word.load(std::memory_order_relaxed) == state_;
  }
  // The call was sent, as one record, and succeeded.
  void succeeded() {
    if (untold()) return;
    const std::uint64_t now = everything_ ? state_ + 1 : state_;
    known_.for_queries.store(now, std::memory_order_relaxed);
    if (asks_ == Asks::Wait) known_.for_waits.store(now, std::memory_order_relaxed);
  }

 private:
  bool untold() const { return !everything_ && state_ == LastUse::several; }
  static std::uint64_t sent() {
    Session& s = *session();
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < s.open_channels(); ++c) sum += s.channel(c).posted();
    return sum;
  }

  const Asks asks_;
  KnownDone& known_;
  const std::uint64_t state_;
  const bool everything_ = false;
};

}  // namespace guest
