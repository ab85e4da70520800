// The guest's state in the protocol: whether it has sent hello, and whether it has broken a rule since.
//
// The guest sends hello once, on one channel; hello fixes the arena's address. The worker serves no other call before
// hello; otherwise a channel could use the old address during the move. Edge G, greeting -> use: a channel that sees
// greeted() sees the arena's address.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace host {

class Protocol {
 public:
  bool greeted() const { return greeting_.load(std::memory_order_acquire) == Greeting::Done; }  // edge G
  // Returns false if another channel has begun, or if the guest has sent hello before.
  bool begin_greeting() {
    Greeting none = Greeting::None;
    return greeting_.compare_exchange_strong(none, Greeting::Begun, std::memory_order_relaxed);
  }
  void end_greeting(bool done) {
    greeting_.store(done ? Greeting::Done : Greeting::None, std::memory_order_release);  // edge G
  }

  std::atomic<bool> broken{false};  // the guest broke the protocol: every channel stops

 private:
  enum class Greeting : std::uint8_t { None, Begun, Done };
  std::atomic<Greeting> greeting_{Greeting::None};
};

}  // namespace host
