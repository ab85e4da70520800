#include "guest/local/refusal.h"

#include <atomic>

#include "guest/report_refusal.h"

namespace guest::local {

CUresult refuse(std::size_t line, CUresult answer) {
  static std::atomic<bool> told[std::size(refusals)];
  const Refusal& refusal = refusals[line];
  if (!told[line].exchange(true, std::memory_order_relaxed)) report_refusal(refusal.symbol.data(), refusal.why);
  return answer;
}

}  // namespace guest::local
