#include "host/broker/vm/worker_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace host::broker {
namespace {

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more,
                              const VmGpus& gpus) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (const std::string& device : gpus.devices) arguments.insert(arguments.end(), {"--device", device});
  return arguments;
}

}  // namespace

std::string WorkerLauncher::label_of(std::uint32_t k) const { return fmt::format("{}/{}", context_.options.name, k); }

std::vector<std::string> WorkerLauncher::arguments_for(std::uint32_t k, bool may_spin) const {
  return {"--broker",
          std::to_string(getpid()),
          "--slot-offset",
          std::to_string(region_.slot_offset(k)),
          "--slot-bytes",
          std::to_string(region_.slot_bytes()),
          "--library",
          context_.program.library,
          "--jail",
          context_.options.jail,
          "--ioctls",
          context_.options.jail_ioctls,
          "--uid",
          std::to_string(context_.options.worker_uid),
          "--gid",
          std::to_string(context_.options.worker_gid),
          "--spin-us",
          std::to_string(may_spin ? context_.options.spin_us : 0),
          "--wait-spin-ms",
          std::to_string(context_.options.wait_spin_ms),
          "--guest-spin-us",
          std::to_string(context_.options.spin_threads > 0 ? context_.options.spin_us : 0),
          "--chaos-delay-us",
          std::to_string(context_.options.chaos_delay_us),
          "--image-bytes",
          std::to_string(context_.options.session_image_bytes),
          "--objects",
          std::to_string(context_.options.session_objects),
          "--gpus",
          std::to_string(std::min<std::size_t>(context_.program.gpus.list.size(), ring::max_devices)),
          "--outlive-ms",
          std::to_string(persistence_.outlives_broker() ? context_.program.outlive_ms : 0),
          "--doorbell-by",
          opened_by_path(context_.options) ? "broker" : "guest",
          "--max-threads",
          std::to_string(context_.options.own_uid && geteuid() == 0 ? context_.options.pids_max : 0),
          "--connect",
          mps_.is_client() ? "asked" : "refused"};
}

WorkerCommand WorkerLauncher::command_for(std::uint32_t k, bool may_spin, const Telemetry& telemetry,
                                          const WorkerSchedule* schedule) {
  WorkerCommand command{.program = context_.program.path,
                        .arguments = with(arguments_for(k, may_spin), memory_.arguments(), context_.program.gpus),
                        .environment = context_.program.environment,
                        .region_fd = region_.memfd(),
                        .doorbell_fd = transport_.doorbell(k),
                        .interrupt_fd = transport_.interrupt(k),
                        .telemetry_fd = telemetry.memfd(),
                        .priority = context_.program.priority,
                        .life_fd = persistence_.outlives_broker() ? context_.program.life_fd : -1,
                        .group_entrance = bounds_.entrance(),
                        .log = &log_};
  if (schedule == nullptr) return command;
  command.orders_fd = schedule->pages().orders_fd();
  command.use_fd = schedule->pages().use_fd();
  command.scheduler_doorbell_fd = schedule->pages().scheduler_doorbell_fd();
  return command;
}

}  // namespace host::broker
