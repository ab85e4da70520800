// One value of the file: whether a key takes it, and what it is then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "host/broker/config_keys.h"
#include "host/broker/toml.h"

namespace host::broker {

using Value = std::variant<std::int64_t, std::string, bool, std::vector<std::string>>;

inline constexpr std::int64_t automatic = -1;  // of a limit: it is worked out from other keys

// Nothing where the key does not take it.
std::optional<Value> value_of(const Key& key, const toml::node& node);

// Precondition: the value is one of value_of() for this key, and the key one of the object's table.
void assign(const Key& key, BrokerOptions& object, const Value& value);
void assign(const Key& key, GpuOptions& object, const Value& value);
void assign(const Key& key, VmOptions& object, const Value& value);

}  // namespace host::broker
