#include "guest/calls/refusal.h"

#include <atomic>

#include "guest/base/report_refusal.h"

namespace guest::calls {

CUresult refuse(std::size_t line, CUresult answer) {
  static std::atomic<bool> reported[std::size(api::entry_points)];
  const api::EntryPoint& refused = api::entry_points[line];
  if (!reported[line].exchange(true, std::memory_order_relaxed))
    report_refusal(refused.name.data(), refused.why.data());
  return answer;
}

}  // namespace guest::calls
