// A result's message as a test compares it.
#pragma once

#include <string>

#include "host/base/result.h"

// "" for a success.
template <class T>
std::string error_of(const host::Result<T>& result) {
  return result ? "" : result.error().message;
}
