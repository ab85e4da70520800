// One key's value, apart from the object that holds it. config_node.h reads it from a node of the file.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "host/broker/config/config_keys.h"

namespace host::broker {

using Value = std::variant<std::int64_t, std::string, bool, std::vector<std::string>>;

inline constexpr std::int64_t automatic = -1;  // of a limit: it is worked out from other keys

// Precondition: the value is one of value_of() for this key, and the key one of the object's table.
void assign(const Key& key, BrokerOptions& object, const Value& value);
void assign(const Key& key, GpuOptions& object, const Value& value);
void assign(const Key& key, VmOptions& object, const Value& value);

// The same the other way round.
Value value_in(const Key& key, const BrokerOptions& object);
Value value_in(const Key& key, const GpuOptions& object);
Value value_in(const Key& key, const VmOptions& object);

// As it would stand in the file, in printable letters; a limit of 0 is "none".
std::string in_the_file(const Key& key, const Value& value);

}  // namespace host::broker
