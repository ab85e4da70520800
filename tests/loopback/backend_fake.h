// The fake driver that backend() returns, for tests that inject errors or count calls.
#pragma once

#include "tests/fake/driver.h"

namespace loopback {
fake::Driver& fake_driver();
}
