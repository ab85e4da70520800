// Tokens: the numbers by which a worker refers to functions of the program. Callbacks (guest/session/callbacks.h) owns
// the table and locks it.
//
// Invariant: no number is used twice. Trust: the worker may send any number, but only a number in the table refers to a
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ring/api/cuda.h"

namespace guest {

// A function of the program with its argument. Life::Once: the first call ends the token.
struct Callback {
  enum class Life : std::uint8_t { Once, UntilEnded };

  // Makes the call. `status`: the stream's status from the worker, for a stream callback.
  CUresult (*function)(const Callback& callback, CUresult status) = nullptr;
  void* argument = nullptr;
  void (*ended)(const Callback& callback) = nullptr;  // called when the token ends without a call
  Life life = Life::Once;
  void (*of_program)() = nullptr;  // the program's function, which `function` casts to its type and calls
  CUstream stream = nullptr;       // the stream's handle as the program passed it
  std::uint64_t object = 0;        // the user object that ends with the call
};

class Tokens {
 public:
  std::uint64_t issue(const Callback& callback) {
    callbacks_[next_] = callback;
    return next_++;
  }
  // Returns the function to call for a token, or nothing if the token is not in the table.
  std::optional<Callback> take(std::uint64_t token) {
    const auto found = callbacks_.find(token);
    if (found == callbacks_.end()) return std::nullopt;
    const Callback callback = found->second;
    if (callback.life == Callback::Life::Once) callbacks_.erase(found);
    return callback;
  }
  std::optional<Callback> find(std::uint64_t token) const {
    const auto found = callbacks_.find(token);
    return found == callbacks_.end() ? std::nullopt : std::optional(found->second);
  }
  // Removes a token and returns its function, or nothing if the token is not in the table.
  std::optional<Callback> end(std::uint64_t token) {
    const auto callback = find(token);
    callbacks_.erase(token);
    return callback;
  }
  bool empty() const { return callbacks_.empty(); }

 private:
  std::unordered_map<std::uint64_t, Callback> callbacks_;
  std::uint64_t next_ = 1;
};

}  // namespace guest
