// The broker's status document as text: VMs, slots, workers, limits, and counters with their rates.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "ring/ops/metrics.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/status_document.h"

namespace ivgpu {
namespace {

namespace f = ring::metrics;

std::string size_of(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string joined(const json& words) {
  std::string text;
  for (const json& word : words) text += (text.empty() ? "" : ", ") + word_of(word);
  return text.empty() ? "nothing" : text;
}

// Returns text such as "no_new_privs, user; missing: landlock (...)".
std::string jail_of(const json& jail) {
  const std::string missing = word_of(jail.at("missing"));
  return joined(jail.at("layers")) + (missing.empty() ? "" : "; missing: " + missing);
}

// A column of the counters of a worker or VM.
struct Column {
  const ring::Metric& metric;
  int width;
};
constexpr Column columns[] = {{f::calls, 9},
                              {f::posted, 9},
                              {f::waited, 9},
                              {f::submitted, 10},
                              {f::record_bytes, 11},
                              {f::reply_bytes, 11},
                              {f::to_device_bytes, 11},
                              {f::from_device_bytes, 11},
                              {f::device_memory_bytes, 12},
                              {f::spun, 9},
                              {f::parked, 9},
                              {f::woken, 9}};

// A row: the label, then `cell` of each column, right-aligned.
template <class Cell>
std::string row(const std::string& label, Cell cell) {
  char part[64];
  std::snprintf(part, sizeof part, "  %-8s", label.c_str());
  std::string line = part;
  for (const Column& column : columns) {
    std::snprintf(part, sizeof part, " %*s", column.width - 1, cell(column).c_str());
    line += part;
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// A row of counters. If `before` holds the values from `seconds` ago, a row of rates follows.
std::string rows(const std::string& label, const json& now, const json& before, double seconds) {
  const auto count = [&](const Column& c) { return rounded(c.metric, value_of(now, c.metric)); };
  const auto rate = [&](const Column& c) -> std::string {
    if (c.metric.kind != ring::MetricKind::Counter) return "";
    return rounded_rate(c.metric, per_second(now, before, c.metric, seconds));
  };
  return row(label, count) + (seconds > 0 ? row("  per s", rate) : "");
}

// Returns "" for a worker that has served no call.
std::string counter_rows(const std::string& label, const json& now, const json& before, double seconds) {
  const json& counters = Earlier::counters(now);
  return value_of(counters, f::calls) == 0 ? "" : rows(label, counters, Earlier::counters(before), seconds);
}

// The program's name as in "vector_add, ". Older brokers and guest libraries report none.
std::string program_of(const json& owner) {
  const std::string name = owner.contains("program") ? word_of(owner["program"]) : "";
  return name.empty() ? "" : name + ", ";
}

// A line for each slot that is not empty, and the number of empty slots.
std::string slot_lines(const json& slots) {
  std::string lines;
  std::size_t empty = 0;
  for (const json& slot : slots) {
    if (slot.at("state") == "empty") {
      ++empty;
      continue;
    }
    const std::string worker = slot.contains("worker") ? std::to_string(number_of<long>(slot["worker"])) : "-";
    char text[96];
    std::snprintf(text, sizeof text, "  slot %-3d  %-8s  worker %-8s", number_of<int>(slot.at("slot")),
                  word_of(slot.at("state")).c_str(), worker.c_str());
    std::string line = text;
    if (slot.contains("owner"))
      line += "  " + program_of(slot["owner"]) + "process " +
              std::to_string(number_of<long>(slot["owner"].at("process"))) + " of peer " +
              std::to_string(number_of<long>(slot["owner"].at("peer"))) + ", for " + seconds_of(slot.at("claimed_s"));
    if (slot.contains("pinned")) line += "  the guest's kernel still uses pages of it";
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return lines +
         (empty > 0 ? "  empty: " + std::to_string(empty) + " of " + std::to_string(slots.size()) + " slots\n" : "");
}

// One line if all workers have the same jail, else a line per worker.
std::string jail_lines(const json& vm) {
  std::string lines, first;
  bool same = true;
  for (const json& slot : vm.at("slots")) {
    if (!slot.contains("jail")) continue;
    const std::string jail = jail_of(slot["jail"]);
    same = same && (first.empty() || jail == first);
    if (first.empty()) first = jail;
    lines += "  jail of slot " + std::to_string(number_of<int>(slot.at("slot"))) + ": " + jail + "\n";
  }
  return same && !first.empty() ? "  jail: " + first + "\n" : lines;
}

// How workers ended, if any did.
std::string ends_line(const json& vm) {
  if (!vm.contains("worker_ends")) return "";
  static constexpr const ring::Metric* kinds[] = {&f::orderly, &f::protocol_broken, &f::killed_by_broker, &f::signal,
                                                  &f::other_code};
  const json& ends = vm["worker_ends"];
  std::string line;
  for (const ring::Metric* kind : kinds) {
    if (const auto count = number_of<std::uint64_t>(ends.at(kind->key)); count != 0)
      line += (line.empty() ? "" : ", ") + std::to_string(count) + " " + kind->title;
  }
  const std::string last = word_of(ends.at("last_reason"));
  return line.empty() ? "" : "  ended workers: " + line + (last.empty() ? "" : "; the last: " + last) + "\n";
}

std::string loop_text(const json& status) {
  if (!status.contains("loop")) return "";
  char text[96];
  std::snprintf(text, sizeof text, "event loop: %llu iterations, %.1f ms of the processor in the longest\n",
                number_of<unsigned long long>(status["loop"].at("iterations")),
                status["loop"].at("longest_iteration_ms").get<double>());
  return text;
}

// The GPUs that the guest sees, one per line; "" if the guest sees all GPUs of the host.
std::string gpu_lines(const json& vm) {
  if (!vm.contains("all_gpus")) return "";  // older brokers do not report it
  const auto missing = number_of<unsigned long>(vm.value("gpus_missing", json(0)));
  const std::string last =
      missing != 0 ? "  GPUs not found: " + std::to_string(missing) + ", which the log names\n" : "";
  if (vm["all_gpus"].get<bool>()) return "  GPUs: all\n" + last;
  const std::string placement = word_of(vm.value("placement", json("fixed")));
  std::string lines;
  for (const json& gpu : vm.at("gpus")) {
    const auto ordinal = std::count(lines.begin(), lines.end(), '\n');
    const std::string index =
        gpu.contains("index") ? "host's " + std::to_string(number_of<int>(gpu["index"])) + ", " : "";
    lines += "  GPU " + std::to_string(ordinal) + ": " + index + word_of(gpu.at("uuid")) +
             (gpu.contains("pci") ? ", " + word_of(gpu["pci"]) : "") +
             (placement != "fixed" ? ", by placement " + placement : "") + "\n";
  }
  return lines + last;
}

// The GPU memory that the VM's programs hold. Older brokers do not report it.
std::string memory_line(const json& vm) {
  const json memory = vm.value("gpu_memory", json());
  if (!memory.is_object()) return "";
  const auto bytes = [&](const char* key) { return static_cast<double>(number_of<std::uint64_t>(memory.at(key))); };
  const double total = bytes("total_bytes");
  return "  GPU memory: " + rounded_size(bytes("used_bytes")) + (total > 0 ? " of " + rounded_size(total) : "") + "\n";
}

// The VM's quota on each GPU, which includes memory that the driver takes. One line per GPU with a quota.
std::string quota_lines(const json& vm) {
  std::string lines;
  for (const json& q : vm.value("gpu_quotas", json::array())) {
    if (q.at("quota_bytes").is_null()) continue;
    const auto bytes = [&](const char* key) {
      return rounded_size(static_cast<double>(number_of<std::uint64_t>(q.at(key))));
    };
    const std::string why = word_of(q.at("missing"));
    lines += "  GPU memory quota: " + bytes("used_bytes") + " of " + bytes("quota_bytes") + " of " +
             word_of(q.at("gpu")) + ", at most " + bytes("peak_bytes") + " so far" +
             (why.empty() ? "" : "; not measured: " + why) + "\n";
  }
  return lines;
}

// The VM's GPU time in seconds; 0 if an older broker does not report it.
double gpu_time_of(const json& vm) {
  const json time = vm.value("gpu_time", json());
  return is_known(time, f::gpu_time::had_s) ? value_of(time, f::gpu_time::had_s) : 0;
}

double gpu_time_of_all(const json& status) {
  double all = 0;
  for (const json& vm : status.at("vms")) all += gpu_time_of(vm);
  return all;
}

// Returns text such as "GPU time: 31 % of all VMs', 12.4 s, weight 2, 80 leases, 3 preempted, waited 25.1 s".
std::string gpu_time_line(const json& vm, double of_all) {
  const json time = vm.value("gpu_time", json());
  namespace t = f::gpu_time;
  if (!is_known(time, t::had_s)) return "";
  char part[32];
  std::snprintf(part, sizeof part, "%.0f %%", of_all > 0 ? 100 * gpu_time_of(vm) / of_all : 0.);
  return "  GPU time: " + std::string(part) + " of all VMs', " + seconds_of(gpu_time_of(vm)) + ", weight " +
         rounded(t::weight, value_of(time, t::weight)) + "; leases " + rounded(t::leases, value_of(time, t::leases)) +
         ", " + rounded(t::preempted, value_of(time, t::preempted)) + " of them preempted; waited " +
         seconds_of(value_of(time, t::waited_s)) + "\n";
}

// How VMs share each GPU now, and the reason if leases are unavailable.
std::string gpus_text(const json& status) {
  std::string lines;
  for (const json& gpu : status.value("gpus", json::array()))
    if (gpu.contains("sharing")) lines += word_of(gpu.at("gpu")) + ": " + word_of(gpu["sharing"]) + "\n";
  const std::string missing = word_of(status.value("gpu_time_missing", json("")));
  return lines + (missing.empty() ? "" : "no leases: " + missing + "\n");
}

std::string of_at_most(const std::string& used, bool bounded, const std::string& most) {
  return used + (bounded ? " of " + most : "");
}

// The limits of all workers of the VM together, and their totals. Older brokers do not report them.
std::string bounds_line(const json& vm) {
  const json bounds = vm.value("bounds", json());
  if (!bounds.is_object()) return "";
  if (bounds.at("group") == "") {
    const std::string why = word_of(bounds.at("group_missing"));
    return "  bounds: of each session alone, images " +
           size_of(number_of<std::uint64_t>(bounds.at("session_image_bytes"))) + ", objects " +
           std::to_string(number_of<long>(bounds.at("session_objects"))) + (why.empty() ? "" : "; missing: " + why) +
           "\n";
  }
  const auto memory = number_of<std::uint64_t>(bounds.at("memory_max_bytes"));
  const auto pids = number_of<std::uint64_t>(bounds.at("pids_max"));
  const auto kills = number_of<std::uint64_t>(bounds.at("oom_kills"));
  char processors[64] = "processors unbounded";
  if (const double most = bounds.at("cpu_max").get<double>(); most > 0)
    std::snprintf(processors, sizeof processors, "processors %.3g, held back for %s", most,
                  seconds_of(bounds.at("throttled_s")).c_str());
  return "  bounds: memory " +
         of_at_most(size_of(number_of<std::uint64_t>(bounds.at("memory_bytes"))), memory != 0, size_of(memory)) +
         (kills != 0 ? ", killed beyond it " + std::to_string(kills) : "") + "; threads " +
         of_at_most(std::to_string(number_of<long>(bounds.at("pids"))), pids != 0, std::to_string(pids)) + "; " +
         processors + "\n";
}

// The VM's socket, its region's file, or both.
std::string place_of(const json& vm) {
  const std::string socket = word_of(vm.at("socket")), memory = word_of(vm.value("memory", json("")));
  return socket + (socket.empty() || memory.empty() ? "" : ", ") + memory;
}

std::string vm_text(const json& vm, const Earlier& earlier, double all_gpu_time) {
  std::string text = "VM " + word_of(vm.at("name")) + ": " + place_of(vm) + ", region " +
                     size_of(number_of<std::uint64_t>(vm.at("region_bytes"))) + ", slots of " +
                     size_of(number_of<std::uint64_t>(vm.at("slot_bytes"))) + ", connections " +
                     std::to_string(number_of<long>(vm.at("connections"))) + ", jail " + word_of(vm.at("jail")) + "\n";
  text += gpu_lines(vm) + memory_line(vm) + quota_lines(vm) + gpu_time_line(vm, all_gpu_time) + jail_lines(vm) +
          bounds_line(vm) + slot_lines(vm.at("slots")) + ends_line(vm);
  const json& before = earlier.vm(vm.at("name"));
  std::string counters;
  for (const json& slot : vm.at("slots"))
    counters += counter_rows("slot " + std::to_string(number_of<int>(slot.at("slot"))), slot,
                             Earlier::slot(before, slot), earlier.seconds);
  counters += counter_rows("all", vm, before, earlier.seconds);
  return text +
         (counters.empty() ? "" : row("", [](const Column& c) { return std::string(c.metric.title); }) + counters);
}

std::string text_of(const json& status, const Earlier& earlier) {
  std::string text = "ivgpud " + word_of(status.at("version")) + ", process " +
                     std::to_string(number_of<long>(status.at("process"))) + ", up " + seconds_of(status.at("up_s")) +
                     ", driver " + word_of(status.at("library")) + "\n" + loop_text(status) + gpus_text(status);
  const double all = gpu_time_of_all(status);
  for (const json& vm : status.at("vms")) text += "\n" + vm_text(vm, earlier, all);
  return text;
}

}  // namespace

std::string status_as_text(const std::string& document, const std::string& before, double seconds) {
  const json status = parse_status(document);
  try {
    return text_of(status, {before.empty() ? json() : json::parse(before, nullptr, false), seconds});
  } catch (const json::exception& failed) {
    status_incomplete(failed.what());
  }
}

}  // namespace ivgpu
