#include "guest/local/refusal.h"

#include <atomic>

#include "guest/log.h"

namespace guest::local {

CUresult refuse(std::size_t line, CUresult answer) {
  static std::atomic<bool> told[std::size(refusals)];
  const Refusal& refusal = refusals[line];
  if (!told[line].exchange(true, std::memory_order_relaxed))
    log(Level::Warn, "%.*s is refused: %s", static_cast<int>(refusal.symbol.size()), refusal.symbol.data(),
        refusal.why);
  return answer;
}

}  // namespace guest::local
