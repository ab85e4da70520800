// Defines a group that only the guest library runs, for the reason given in handles.cc.
#pragma once

#include "tests/contract/suite.h"

namespace contract {

extern const Group wrong_handles;

}  // namespace contract
