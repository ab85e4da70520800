// The address of each call, whether the simulation serves it or absent.cc refuses it. This file declares the calls
// without cuda.h, so it must not include a header that includes cuda.h. entry_points.cc converts the table.
//
// The declarations have protected visibility. With default visibility, another libcuda in the process could preempt the
// symbols. With hidden visibility, the definitions would not be exported.
namespace simgpu::served {

extern "C" {
#define DECLARE(symbol) __attribute__((weak, visibility("protected"))) void symbol();
#define CALL(id, symbol, ...) DECLARE(symbol)
#define CUSTOM(id, symbol, ...) DECLARE(symbol)
#define LOCAL(symbol, ...) DECLARE(symbol)
#define VARIANT(symbol, ...) DECLARE(symbol)
#define ABSENT(symbol, ...) DECLARE(symbol)
#include "ring/api/driver.def"
}

struct Symbol {
  const char* name;
  int since;
  void (*function)();
};

extern const Symbol symbols[];
extern const unsigned symbol_count;

const Symbol symbols[] = {
#define CALL(id, symbol, since, ...) {#symbol, since, &symbol},
#define CUSTOM(id, symbol, since, ...) {#symbol, since, &symbol},
#define LOCAL(symbol, since, ...) {#symbol, since, &symbol},
#define VARIANT(symbol, since, of) {#symbol, since, &symbol},
#define ABSENT(symbol, since, why) {#symbol, since, &symbol},
#include "ring/api/driver.def"
};
const unsigned symbol_count = sizeof symbols / sizeof *symbols;

}  // namespace simgpu::served
