#include "host/broker/alloc/gpu_presence.h"

#include <algorithm>
#include <utility>

#include "host/broker/alloc/gpu_accounts.h"
#include "ring/layout/layout.h"

namespace host::broker {
namespace {

// The kernel lists the GPU, unless it had disappeared before the broker started.
std::string words_for(const std::string& key, const std::vector<Gpu>& host) {
  const auto gpu = std::ranges::find(host, key, [](const Gpu& one) { return key_of(one.uuid); });
  return gpu != host.end() ? in_words(*gpu) : "GPU-" + key;
}

}  // namespace

bool GpuPresence::heard(const VmGpus& gpus, const worker::ReadyMessage& reported) {
  std::set<std::string> found;
  for (std::uint32_t d = 0; d < std::min(reported.gpus, ring::max_devices); ++d)
    found.insert(key_of(uuid_in_words(reported.gpu[d].uuid)));
  const std::vector<std::string> before = std::exchange(missing_, missed(gpus, found));
  return missing_ != before;
}

std::vector<std::string> GpuPresence::missed(const VmGpus& gpus, const std::set<std::string>& found) {
  std::vector<std::string> missing;
  if (gpus.all) {
    seen_.insert(found.begin(), found.end());
    if (seen_.size() > ring::max_devices)
      seen_ = found;  // more than any worker has: the workers have lied, or GPUs were exchanged
    for (const std::string& key : seen_)
      if (!found.contains(key)) missing.push_back(words_for(key, gpus.list));
    if (seen_.empty()) missing.emplace_back("any GPU");
    return missing;
  }
  // A MIG device's old name has no UUID, so names cannot be compared; only too small a count shows that one is missing.
  if (found.size() >= std::min<std::size_t>(gpus.list.size(), ring::max_devices)) return missing;
  for (const Gpu& gpu : gpus.list)
    if (!found.contains(key_of(gpu.uuid))) missing.push_back(in_words(gpu));
  return missing;
}

}  // namespace host::broker
