// Includes toml++, which no other file does. TOML_ASSERT throws on a text that breaks toml++'s assumptions. Unchanged
// and with NDEBUG, toml++ would turn its assertions into promises to the compiler.
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
#define TOML_MAX_NESTED_VALUES 8  // nested arrays and tables; no key takes one

#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
