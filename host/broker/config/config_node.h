// One value of the file: checked against its key, and converted.
#pragma once

#include <optional>

#include "host/broker/config/config_value.h"
#include "host/broker/config/toml.h"

namespace host::broker {

// Nothing if the key does not take it.
std::optional<Value> value_of(const Key& key, const toml::node& node);

}  // namespace host::broker
