// The numbers by which a worker names functions of the program's, and what they stand for. The callbacks own it and
// lock it (guest/session/callbacks.h).
//
// Invariant: no number is given out twice. Trust: the worker sends numbers; one that is not in the table is nobody's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ring/api/cuda.h"

namespace guest {

// A function of the program's with its argument. Once: its first call ends its token.
struct Callback {
  enum class Life : std::uint8_t { Once, UntilEnded };

  CUresult (*function)(void*) = nullptr;
  void* argument = nullptr;
  Life life = Life::Once;
};

class Tokens {
 public:
  std::uint64_t issue(const Callback& callback) {
    callbacks_[next_] = callback;
    return next_++;
  }
  // For a call of it. Nothing: nobody's.
  std::optional<Callback> take(std::uint64_t token) {
    const auto found = callbacks_.find(token);
    if (found == callbacks_.end()) return std::nullopt;
    const Callback callback = found->second;
    if (callback.life == Callback::Life::Once) callbacks_.erase(found);
    return callback;
  }
  bool end(std::uint64_t token) { return callbacks_.erase(token) != 0; }
  bool empty() const { return callbacks_.empty(); }

 private:
  std::unordered_map<std::uint64_t, Callback> callbacks_;
  std::uint64_t next_ = 1;
};

}  // namespace guest
