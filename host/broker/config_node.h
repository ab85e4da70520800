// One value of the file: whether a key takes it, and what it is then.
#pragma once

#include <optional>

#include "host/broker/config_value.h"
#include "host/broker/toml.h"

namespace host::broker {

// Nothing where the key does not take it.
std::optional<Value> value_of(const Key& key, const toml::node& node);

}  // namespace host::broker
