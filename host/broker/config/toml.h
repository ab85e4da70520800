// toml++, the one place where it is included. Its assumptions about a text are checked here while it reads, and a text
// that breaks one is an error of that text: compiled as it comes, with NDEBUG, these would be promises to the compiler.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace host::broker {

struct TomlSurprised : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void toml_surprised(const char* what) { throw TomlSurprised(what); }

}  // namespace host::broker

#define TOML_ASSERT(what) ((what) ? static_cast<void>(0) : ::host::broker::toml_surprised(#what))
#define TOML_MAX_NESTED_VALUES 8  // arrays and tables in a value: no key takes one

#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
