// A group that only the guest library runs; handles.cc says why.
#pragma once

#include "tests/contract/suite.h"

namespace contract {

extern const Group wrong_handles;

}  // namespace contract
