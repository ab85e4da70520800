#include "host/broker/region/region_scrubbers.h"

#include <fmt/format.h>

#include <utility>

namespace host::broker {

RegionScrubbers::RegionScrubbers(ScrubQueue& queue, const Region& region, const std::string& vm, std::size_t slots)
    : queue_(queue), region_(region), vm_(vm), rest_(make(region.rest(), "what belongs to no slot")) {
  for (std::uint32_t k = 0; k < slots; ++k) slots_.push_back(make({region.slot_range(k)}, fmt::format("slot {}", k)));
}

std::unique_ptr<PageScrubber> RegionScrubbers::make(std::vector<Region::Range> ranges, const std::string& what) const {
  return std::make_unique<PageScrubber>(queue_, region_, std::move(ranges), vm_ + ": " + what);
}

void RegionScrubbers::scrub_everything(std::function<void()> done) {
  rest_.reset();
  for (const auto& slot : slots_) slot->stop();
  everything_ = make(region_.memory().everything(), "its memory");
  everything_->start(std::move(done));
}

}  // namespace host::broker
