// The address of each call, whether it is served or refused by absent.cc. Nothing here may bring cuda.h's declarations of
// the calls in; hence the table of another file.
//
// The declarations are protected, not default, or another libcuda in the process could lend its symbols; and not
// hidden, which would take the definitions' export away.
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
