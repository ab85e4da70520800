// Checks a TOML value against its key, and converts it.
#pragma once

#include <optional>

#include "host/broker/config/config_value.h"
#include "host/broker/config/toml.h"

namespace host::broker {

// Nothing if the key does not allow the value.
[[nodiscard]] std::optional<Value> value_of(const Key& key, const toml::node& node);

}  // namespace host::broker
