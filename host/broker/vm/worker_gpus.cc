#include "host/broker/vm/worker_gpus.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace host::broker {
namespace {

constexpr auto shortest_between_restarts = std::chrono::seconds(5),
               longest_between_restarts = std::chrono::seconds(300);

}  // namespace

const std::vector<Gpu>& WorkerGpus::of_guests() const {
  const VmGpus& gpus = context_.program.gpus;
  return gpus.all && !found_.empty() ? found_ : gpus.list;
}

// The report may include a GPU whose UUID the kernel did not know when the broker started.
void WorkerGpus::learn(const worker::ReadyMessage& reported) {
  const std::uint32_t count = std::min(reported.gpus, ring::max_devices);
  memory_ = 0;
  for (std::uint32_t i = 0; i < count; ++i) memory_ += reported.gpu[i].memory;
  if (reported.init != 0) return;
  const auto& host = context_.program.gpus.list;
  found_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string uuid = uuid_in_words(reported.gpu[i].uuid);
    auto known = std::ranges::find_if(host, [&](const Gpu& gpu) { return key_of(gpu.uuid) == key_of(uuid); });
    if (known == host.end()) known = std::ranges::find(host, std::string(), &Gpu::uuid);
    if (known != host.end()) found_.emplace_back(*known).uuid = uuid;
  }
}

void WorkerGpus::forget() {
  presence_ = {};
  found_.clear();
}

void WorkerGpus::compare(std::uint32_t k, const worker::ReadyMessage& reported) {
  if (presence_.heard(context_.program.gpus, reported)) {
    report(reported);
    between_restarts_ = shortest_between_restarts;
  }
  const bool lacks = !missing().empty();
  lacks_[k] = lacks;
  end_unclaimed_where_([&](std::uint32_t other) { return other != k && lacks_[other] != lacks; });
  if (!lacks || timer_ != 0) return;
  timer_ = context_.loop.after(between_restarts_, [this] {
    timer_ = 0;
    between_restarts_ = std::min<Clock::duration>(2 * between_restarts_, longest_between_restarts);
    end_unclaimed_where_([this](std::uint32_t other) { return lacks_[other]; });
  });
}

void WorkerGpus::report(const worker::ReadyMessage& reported) const {
  if (missing().empty()) return spdlog::info("{}: its workers find all its GPUs again", context_.options.name);
  const std::string answer = reported.init != 0 ? fmt::format(" (cuInit gave {})", reported.init) : "";
  spdlog::error(
      "{}: its workers do not find {}{}: programs that start now find what is left, as CUDA shows it, or get CUDA's "
      "error, until that is mended; the kernel's log may say why (dmesg | grep NVRM)",
      context_.options.name, fmt::join(missing(), ", "), answer);
}

}  // namespace host::broker
