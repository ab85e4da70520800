// A VM's workers and GPUs that disappear and come back (host/broker/alloc/gpu_presence.h). A worker knows the GPUs that
// existed when it started. A spare worker is therefore ended when later workers find other GPUs. A worker that lacks a
// GPU is restarted until the GPU is back, at growing intervals.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

constexpr auto shortest_between_restarts = std::chrono::seconds(5),
               longest_between_restarts = std::chrono::seconds(300);

}  // namespace

void Vm::look_at_gpus(std::uint32_t k, const worker::ReadyMessage& reported) {
  if (presence_.heard(context_.program.gpus, reported)) {
    report_gpus(reported);
    between_restarts_ = shortest_between_restarts;
  }
  const bool lacks = !presence_.missing().empty();
  slots_[k].lacks_gpus = lacks;
  end_unclaimed_where([&](std::uint32_t other) { return other != k && slots_[other].lacks_gpus != lacks; });
  if (!lacks || gpu_timer_ != 0) return;
  gpu_timer_ = context_.loop.after(between_restarts_, [this] {
    gpu_timer_ = 0;
    between_restarts_ = std::min<Clock::duration>(2 * between_restarts_, longest_between_restarts);
    end_unclaimed_where([this](std::uint32_t other) { return slots_[other].lacks_gpus; });
  });
}

void Vm::report_gpus(const worker::ReadyMessage& reported) const {
  if (presence_.missing().empty())
    return spdlog::info("{}: its workers find all its GPUs again", context_.options.name);
  const std::string answer = reported.init != 0 ? fmt::format(" (cuInit gave {})", reported.init) : "";
  spdlog::error(
      "{}: its workers do not find {}{}: programs that start now find what is left, as CUDA shows it, or get CUDA's "
      "error, until that is mended; the kernel's log may say why (dmesg | grep NVRM)",
      context_.options.name, fmt::join(presence_.missing(), ", "), answer);
}

}  // namespace host::broker
