// The functions behind libcuda.so.1's symbols, for tests with the guest library in their own process.
#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "tests/loopback/in_process.h"

namespace cu {
#define CALL(id, fn, ...) decltype(&::fn) const fn = &guest::Stub<id>::call;
#define CUSTOM(id, fn, ...) decltype(&::fn) const fn = &guest::calls::fn;
#define LOCAL(fn, ...) decltype(&::fn) const fn = &guest::calls::fn;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace cu
