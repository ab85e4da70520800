// Cases that only the guest library is asked: see handles.cc.
#pragma once

#include "tests/contract/suite.h"

namespace contract {

extern const Group wrong_handles;

}  // namespace contract
