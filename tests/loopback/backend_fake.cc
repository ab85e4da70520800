// Chooses the strict fake driver for the scenarios.
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"

fake::Driver& loopback::fake_driver() {
  static auto* const driver = new fake::Driver;
  return *driver;
}

const host::Driver& loopback::backend() { return fake_driver().table(); }
