#include "host/broker/region/gpu_answers.h"

#include <atomic>

namespace host::broker {

void GpuAnswers::restore() const {
  ring::RegionView(region_).vm_page()[&ring::VmPage::version].store(ring::vm_page_version, std::memory_order_relaxed);
}

// A reader that copies during this write sees that `sequence` has changed.
void GpuAnswers::publish(ring::VmPage page, const std::vector<ring::VmGpu>& gpus) const {
  const ring::RegionView view(region_);
  const auto sequence = view.vm_page()[&ring::VmPage::sequence];
  const std::uint32_t writing = sequence.load(std::memory_order_relaxed) | 1u;
  sequence.store(writing, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // pairs with a reader's acquire fence after its copy
  for (std::uint32_t i = 0; i < gpus.size(); ++i) view.vm_gpu(i).copy_in(gpus[i]);
  page.sequence = writing;
  view.vm_page().copy_in(page);
  sequence.store(writing + 1, std::memory_order_release);  // pairs with a reader's first load
}

std::uint32_t GpuAnswers::answered() const {
  return ring::RegionView(region_).vm_page()[&ring::VmPage::answered].load(std::memory_order_relaxed);
}

}  // namespace host::broker
