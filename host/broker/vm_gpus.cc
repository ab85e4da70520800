// A VM's workers and its GPUs, of which some may disappear and come back (host/broker/gpu_presence.h). A worker knows the GPUs
// that were there when it started. So one that was started ahead of its program does not stay once others have started
// that find others, and one that lacks a GPU is started again until it is back.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "host/broker/vm.h"

namespace host::broker {
namespace {

constexpr auto time_to_come_back = std::chrono::seconds(5);

}  // namespace

void Vm::look_at_gpus(std::uint32_t k, const worker::ReadyMessage& said) {
  if (presence_.heard(program_.gpus, said)) tell_gpus();
  const bool lacks = !presence_.missing().empty();
  slots_[k].lacks_gpus = lacks;
  end_unclaimed_where([&](std::uint32_t other) { return other != k && slots_[other].lacks_gpus != lacks; });
  if (!lacks || gpu_timer_ != 0) return;
  gpu_timer_ = loop_.after(time_to_come_back, [this] {
    gpu_timer_ = 0;
    end_unclaimed_where([this](std::uint32_t other) { return slots_[other].lacks_gpus; });
  });
}

void Vm::tell_gpus() const {
  if (presence_.missing().empty()) return spdlog::info("{}: its workers find all its GPUs again", options_.name);
  spdlog::error(
      "{}: its workers do not find {}: programs that start now get CUDA's error, until it is back; the kernel's log "
      "may say why (dmesg | grep NVRM)",
      options_.name, fmt::join(presence_.missing(), ", "));
}

}  // namespace host::broker
