// A key's value, separate from the options that hold it. config_node.h reads it from TOML.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "host/broker/config/config_keys.h"

namespace host::broker {

using Value = std::variant<std::int64_t, std::string, bool, std::vector<std::string>>;

inline constexpr std::int64_t automatic = -1;  // of a limit: computed from other keys

// Precondition: value_of() returned `value` for this key, and the key belongs to the object's table.
void assign(const Key& key, BrokerOptions& object, const Value& value);
void assign(const Key& key, GpuOptions& object, const Value& value);
void assign(const Key& key, VmOptions& object, const Value& value);

// The inverse of assign().
Value value_in(const Key& key, const BrokerOptions& object);
Value value_in(const Key& key, const GpuOptions& object);
Value value_in(const Key& key, const VmOptions& object);

// The value in TOML, in printable letters; a limit of 0 is "none".
std::string in_the_file(const Key& key, const Value& value);

}  // namespace host::broker
