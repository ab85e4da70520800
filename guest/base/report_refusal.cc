#include "guest/base/report_refusal.h"

#include <atomic>

#include "guest/base/log.h"

namespace guest {

void report_refusal(const char* symbol, const char* why) {
  static std::atomic<bool> reported_one{false};
  log(Level::Warn, "%s is refused: %s", symbol, why);
  if (!reported_one.exchange(true, std::memory_order_relaxed))
    log(Level::Warn, "`ivgpu coverage PROGRAM` lists all that a program calls and ivgpu does not serve");
}

}  // namespace guest
