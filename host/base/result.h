// What a function returns that can fail: a value, or an Error whose message says why.
//
// A function returns either one as it is, since both convert to a Result. Its caller tests the Result first, and passes
// an error on with its message or with a message of its own:
//
// ```cpp
// #include <charconv>
// #include <string>
// #include <system_error>
//
// host::Result<int> parse_port(const std::string& text) {
//   int port = 0;
//   if (std::from_chars(text.data(), text.data() + text.size(), port).ec != std::errc())
//     return host::Error{"'" + text + "' is no port"};
//   return port;
// }
//
// host::Result<void> check_port(const std::string& text) {
//   const auto port = parse_port(text);
//   if (!port) return port.error();
//   if (*port < 1024) return host::Error{"port " + text + " is reserved"};
//   return {};
// }
// ```
//
// The compiler warns of a call that ignores the Result. Taking the value of a failed call, or the error of a successful
// one, aborts the process, in builds without assertions as well.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace host {

struct Error {
  std::string message;
};

// Names the mistake on standard error.
[[noreturn]] inline void abort_on_misuse(const std::string& mistake) {
  std::fprintf(stderr, "%s\n", mistake.c_str());
  std::abort();
}

template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, Error> && !std::is_reference_v<T>, "a Result holds a value or an Error");

 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }

  T& value() & {
    require_value();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    require_value();
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (*this) abort_on_misuse("a successful call has no error");
    return *std::get_if<1>(&state_);
  }

 private:
  void require_value() const {
    if (!*this) abort_on_misuse("a failed call has no value: " + error().message);
  }

  std::variant<T, Error> state_;
};

// A default-constructed Result<void> is a success, so that a function ends with `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }

  void value() const {
    if (error_) abort_on_misuse("a failed call has no value: " + error_->message);
  }
  void operator*() const { value(); }

  const Error& error() const {
    if (!error_) abort_on_misuse("a successful call has no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace host
