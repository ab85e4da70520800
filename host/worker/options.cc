#include "host/worker/options.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

namespace host::worker {
namespace {

template <class T>
bool number(std::string_view text, T& into) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), into);
  return failed == std::errc() && end == text.data() + text.size();
}

bool jail_mode(std::string_view text, JailMode& into) {
  if (text == "off")
    into = JailMode::Off;
  else if (text == "best-effort")
    into = JailMode::BestEffort;
  else if (text == "required")
    into = JailMode::Required;
  else
    return false;
  return true;
}

// Accepts NVIDIA's device files. A path with ".." is refused, because it could lead to another file.
bool device(std::string_view path, std::vector<std::string>& into) {
  if (!path.starts_with("/dev/nvidia") || path.find("..") != std::string_view::npos) return false;
  into.emplace_back(path);
  return true;
}

bool set(Options& o, std::string_view name, std::string_view value) {
  if (name == "--control-fd") return number(value, o.control_fd);
  if (name == "--region-fd") return number(value, o.region_fd);
  if (name == "--doorbell-fd") return number(value, o.doorbell_fd);
  if (name == "--interrupt-fd") return number(value, o.interrupt_fd);
  if (name == "--telemetry-fd") return number(value, o.telemetry_fd);
  if (name == "--group-fd") return number(value, o.group_fd);
  if (name == "--orders-fd") return number(value, o.orders_fd);
  if (name == "--use-fd") return number(value, o.use_fd);
  if (name == "--scheduler-doorbell-fd") return number(value, o.scheduler_doorbell_fd);
  if (name == "--life-fd") return number(value, o.life_fd);
  if (name == "--outlive-ms") return number(value, o.outlive_ms);
  if (name == "--doorbell-by") {
    o.doorbell_by_broker = value == "broker";
    return value == "broker" || value == "guest";
  }
  if (name == "--gpus") return number(value, o.gpus);
  if (name == "--nice") return number(value, o.nice);
  if (name == "--broker") return number(value, o.broker);
  if (name == "--slot-offset") return number(value, o.slot_offset);
  if (name == "--slot-bytes") return number(value, o.slot_bytes);
  if (name == "--library") {
    o.library = value;
    return !value.empty();
  }
  if (name == "--device") return device(value, o.devices);
  if (name == "--jail") return jail_mode(value, o.jail);
  if (name == "--ioctls") {
    o.any_ioctl = value == "any";
    return value == "any" || value == "listed";
  }
  if (name == "--connect") {
    o.asks_to_connect = value == "asked";
    return value == "asked" || value == "refused";
  }
  if (name == "--uid") return number(value, o.uid);
  if (name == "--gid") return number(value, o.gid);
  if (name == "--spin-us") return number(value, o.spin_us);
  if (name == "--wait-spin-ms") return number(value, o.wait_spin_ms);
  if (name == "--guest-spin-us") return number(value, o.guest_spin_us);
  if (name == "--chaos-delay-us") return number(value, o.chaos_delay_us);
  if (name == "--image-bytes") return number(value, o.image_bytes);
  if (name == "--objects") return number(value, o.objects);
  if (name == "--lender") {
    o.borrows = value == "broker";
    return value == "broker" || value == "none";
  }
  if (name == "--gpu-memory") return number(value, o.gpu_memory);
  if (name == "--context-bytes") return number(value, o.context_bytes);
  if (name == "--max-threads") return number(value, o.max_threads);
  return false;
}

}  // namespace

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (!set(options, name, value))
      return Error{"'" + name + " " + value + "' is no option of a worker; ivgpud starts workers, nobody else"};
  }
  const bool descriptors =
      options.control_fd >= 0 && options.region_fd >= 0 && options.doorbell_fd >= 0 && options.telemetry_fd >= 0;
  if (!descriptors || options.library.empty())
    return Error{
        "--control-fd, --region-fd, --doorbell-fd, --telemetry-fd and --library are needed; ivgpud starts workers, "
        "nobody else"};
  return options;
}

}  // namespace host::worker
