// The VM's page of a region, in which the broker answers what guests ask about their GPUs.
//
// Region hands it out; Vm writes the answers. A view without state of its own. Thread: the broker's loop.
//
// Trust: a guest can overwrite the page; the broker reads `answered` from it, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ring/layout/region_view.h"

namespace host::broker {

class GpuAnswers {
 public:
  // `region`: the start of the mapped region.
  explicit GpuAnswers(std::byte* region) : region_(region) {}

  // Restores the page's version, which a guest may have overwritten.
  void restore() const;
  // Writes the answer about the VM's GPUs, at most ring::max_devices; `page.sequence` is ignored.
  void publish(ring::VmPage page, const std::vector<ring::VmGpu>& gpus) const;
  // Answered questions, from a page that a guest may have overwritten.
  std::uint32_t answered() const;

 private:
  std::byte* region_;
};

}  // namespace host::broker
