// The page scrubbers of one VM's region: of each slot, of the memory outside slots, and of the whole memory once the VM
// is removed. Owns them.
//
// Thread: the broker's event loop. Queue and region outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/broker/region/page_scrubber.h"

namespace host::broker {

class RegionScrubbers {
 public:
  RegionScrubbers(ScrubQueue& queue, const Region& region, const std::string& vm, std::size_t slots);

  // Calls `done` once, when the slot is scrubbed. Nothing is scrubbed before this returns.
  void scrub_slot(std::uint32_t k, std::function<void()> done = nullptr) { slots_[k]->start(std::move(done)); }
  void stop_slot(std::uint32_t k) { slots_[k]->stop(); }
  // Scrubs the memory outside slots.
  void scrub_rest() { rest_->start(); }
  // Scrubs the whole memory, and nothing else any more. Calls `done` when all is scrubbed.
  void scrub_everything(std::function<void()> done);
  // `done` of scrub_everything() is not called any more.
  void stop_everything() { everything_.reset(); }

 private:
  std::unique_ptr<PageScrubber> make(std::vector<Region::Range> ranges, const std::string& what) const;

  ScrubQueue& queue_;
  const Region& region_;
  const std::string vm_;
  std::vector<std::unique_ptr<PageScrubber>> slots_;
  std::unique_ptr<PageScrubber> rest_;
  std::unique_ptr<PageScrubber> everything_;
};

}  // namespace host::broker
