// The fake driver that backend() stands for, for tests that order errors or look at what was called.
#pragma once

#include "tests/fake/driver.h"

namespace loopback {
fake::Driver& fake_driver();
}
