// Queries and waits that the guest answers itself, because a stream, an event or a context is known to be done.
//
// An object that was found done stays done until a call is posted to the object. The guest reads the object's last use
// before it sends the query, and stores that use if the query succeeds. While the last use is unchanged, the guest
// knows the answer. A call that another thread posts changes the last use. The NULL stream and the context are done
// when all work is done. For these two, the guest compares the number of records that all channels have sent.
//
// If the guest gave up a wait, it stores nothing. The guest also knows no answer while an object remembers several uses
// or is used by graphs (guest/objects/memory/last_use.h), since the stored value then does not change with the next
// call.
//
// No error is lost: every call looks for a fault of the context. While the error of a posted call is unreported, the
// guest sends every query to the worker.
#pragma once

#include <optional>

#include "guest/base/switches.h"
#include "guest/marshal/order.h"
#include "ring/api/call.h"

namespace guest {

using api::Asks;

class DoneQuestion {
 public:
  // A question about a stream or an event.
  DoneQuestion(Asks asks, Object& object) : asks_(asks), known_(object.done), state_(object.last_use.now()) {}
  // A question about all work that was sent: for the NULL stream or the context.
  DoneQuestion(Asks asks, KnownDone& known) : asks_(asks), known_(known), state_(sent()), everything_(true) {}

  bool answered() const {
    const auto& word = asks_ == Asks::Query ? known_.for_queries : known_.for_waits;
    return switches().known_done && !several_uses() && word.load(std::memory_order_relaxed) == state_;
  }
  // Called when the call was sent as one record and succeeded.
  void succeeded() {
    if (several_uses()) return;
    const std::uint64_t now = everything_ ? state_ + 1 : state_;
    known_.for_queries.store(now, std::memory_order_relaxed);
    if (asks_ == Asks::Wait) known_.for_waits.store(now, std::memory_order_relaxed);
  }

 private:
  bool several_uses() const { return !everything_ && state_ == LastUse::several; }
  static std::uint64_t sent() {
    Session& s = *session();
    std::uint64_t sum = 0;
    for (std::uint32_t c = 0; c < s.channels().open(); ++c) sum += s.channels().at(c).posted();
    return sum;
  }

  const Asks asks_;
  KnownDone& known_;
  const std::uint64_t state_;
  const bool everything_ = false;
};

}  // namespace guest
