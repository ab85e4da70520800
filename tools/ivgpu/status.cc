// `ivgpu status`: connects to the broker's status socket, reads one JSON document, and shows it.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"
#include "tools/ivgpu/say.h"
#include "tools/ivgpu/socket.h"

namespace ivgpu {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int known_format = 1;
constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t longest = 16 << 20;

std::string read_to_end(const Fd& socket) {
  std::string text;
  const auto end = Clock::now() + patience;
  while (text.size() < longest) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd wait{socket.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) != 1) break;
    char buffer[16384];
    const ssize_t n = read(socket.get(), buffer, sizeof buffer);
    if (n == 0) return text;
    if (n < 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  throw Error(exit_code::missing, "the broker did not tell its status to the end");
}

std::string size_of(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// "812 B", "3.4 KiB": three digits tell enough of what counts up.
std::string rounded_size(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

std::string seconds_of(const json& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds.get<double>());
  return text;
}

std::string joined(const json& words) {
  std::string text;
  for (const json& word : words) text += (text.empty() ? "" : ", ") + word.get<std::string>();
  return text.empty() ? "nothing" : text;
}

// "no_new_privs, user; missing: landlock (...)"
std::string jail_of(const json& jail) {
  const std::string missing = jail.at("missing");
  return joined(jail.at("layers")) + (missing.empty() ? "" : "; missing: " + missing);
}

// Counters of a slot or a VM, with rates where `before` has the same ones from `seconds` ago.
class CounterText {
 public:
  CounterText(const json& now, const json& before, double seconds) : now_(now), before_(before), seconds_(seconds) {}

  std::string text() const {
    return "calls " + number("calls") + ": posted " + number("posted") + ", waited " + number("waited") + "; rings " +
           bytes("record_bytes") + " in, " + bytes("reply_bytes") + " out; copies " + bytes("to_device_bytes") +
           " to the device, " + bytes("from_device_bytes") + " from it; device memory " +
           rounded_size(static_cast<double>(at(now_, "device_memory_bytes"))) + "; spun " + number("spun") +
           ", parked " + number("parked") + ", woken " + number("woken");
  }

 private:
  static std::uint64_t at(const json& counters, const char* key) { return counters.value(key, std::uint64_t{0}); }
  std::string number(const char* key) const {
    char rate[32];
    std::snprintf(rate, sizeof rate, " (%.0f/s)", per_second(key));
    return std::to_string(at(now_, key)) + (seconds_ > 0 ? rate : "");
  }
  std::string bytes(const char* key) const {
    return rounded_size(static_cast<double>(at(now_, key))) +
           (seconds_ > 0 ? " (" + rounded_size(per_second(key)) + "/s)" : "");
  }
  // A counter that went down is another worker's, or no honest one's.
  double per_second(const char* key) const {
    const std::uint64_t now = at(now_, key), then = before_.is_object() ? at(before_, key) : 0;
    return seconds_ > 0 && now > then ? static_cast<double>(now - then) / seconds_ : 0;
  }

  const json& now_;
  const json& before_;
  const double seconds_;
};

// An earlier document, and how long ago it was.
struct Earlier {
  json document;
  double seconds = 0;

  // Null where there was none.
  const json& vm(const json& name) const {
    static const json none;
    if (!document.is_object()) return none;
    for (const json& vm : document.at("vms"))
      if (vm.at("name") == name) return vm;
    return none;
  }
  static const json& counters(const json& vm_or_slot) {
    static const json none;
    return vm_or_slot.is_object() && vm_or_slot.contains("counters") ? vm_or_slot["counters"] : none;
  }
  // Of the same worker: another's would be no beginning.
  static const json& slot(const json& vm, const json& now) {
    static const json none;
    if (!vm.is_object()) return none;
    for (const json& slot : vm.at("slots"))
      if (slot.at("slot") == now.at("slot") && slot.value("worker", 0L) == now.value("worker", 0L)) return slot;
    return none;
  }
};

// Nothing of a worker that has served nobody.
std::string counter_line(const char* indent, const json& now, const json& before, double seconds) {
  const json& counters = Earlier::counters(now);
  if (!counters.is_object() || counters.value("calls", 0UL) == 0) return "";
  return indent + CounterText(counters, Earlier::counters(before), seconds).text() + "\n";
}

std::string slot_line(const json& slot) {
  const std::string worker = slot.contains("worker") ? std::to_string(slot["worker"].get<long>()) : "-";
  char text[96];
  std::snprintf(text, sizeof text, "  slot %-2d  %-8s  worker %-8s", slot.at("slot").get<int>(),
                slot.at("state").get<std::string>().c_str(), worker.c_str());
  std::string line = text;
  if (slot.contains("owner")) {
    const json& owner = slot["owner"];
    line += "  process " + std::to_string(owner.at("process").get<long>()) + " of peer " +
            std::to_string(owner.at("peer").get<long>()) + ", for " + seconds_of(slot.at("claimed_s"));
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// Once where all workers have the same, else for each.
std::string jail_lines(const json& vm) {
  std::string lines, first;
  bool same = true;
  for (const json& slot : vm.at("slots")) {
    if (!slot.contains("jail")) continue;
    const std::string jail = jail_of(slot["jail"]);
    same = same && (first.empty() || jail == first);
    if (first.empty()) first = jail;
    lines += "  jail of slot " + std::to_string(slot.at("slot").get<int>()) + ": " + jail + "\n";
  }
  return same && !first.empty() ? "  jail: " + first + "\n" : lines;
}

std::string vm_text(const json& vm, const Earlier& earlier) {
  std::string text =
      "VM " + vm.at("name").get<std::string>() + ": " + vm.at("socket").get<std::string>() + vm.value("memory", "") +
      ", region " + size_of(vm.at("region_bytes")) + ", slots of " + size_of(vm.at("slot_bytes")) + ", connections " +
      std::to_string(vm.at("connections").get<long>()) + ", jail " + vm.at("jail").get<std::string>() + "\n";
  const json& before = earlier.vm(vm.at("name"));
  for (const json& slot : vm.at("slots"))
    text += slot_line(slot) + counter_line("           ", slot, Earlier::slot(before, slot), earlier.seconds);
  return text + counter_line("  since it began: ", vm, before, earlier.seconds) + jail_lines(vm);
}

std::string text_of(const json& status, const Earlier& earlier) {
  std::string text = "ivgpud " + status.at("version").get<std::string>() + ", process " +
                     std::to_string(status.at("process").get<long>()) + ", up " + seconds_of(status.at("up_s")) +
                     ", driver " + status.at("library").get<std::string>() + "\n";
  for (const json& vm : status.at("vms")) text += vm_text(vm, earlier);
  return text;
}

// On a terminal each takes the place of the one before.
[[noreturn]] void watch(const StatusOptions& options) {
  const char* between = isatty(STDOUT_FILENO) != 0 ? "\x1b[H\x1b[2J" : "\n";
  std::string before = read_status(options.runtime_dir);
  auto then = Clock::now();
  say(options.json ? before : status_as_text(before));
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
    const std::string now = read_status(options.runtime_dir);
    const std::chrono::duration<double> passed = Clock::now() - std::exchange(then, Clock::now());
    say(options.json ? now : between + status_as_text(now, before, passed.count()));
    before = now;
  }
}

}  // namespace

std::string status_as_text(const std::string& document, const std::string& before, double seconds) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object() || status.value("format", json()) != known_format)
    throw Error(exit_code::missing, "the broker is of another version: this is not the status that this ivgpu knows");
  try {
    return text_of(status, {before.empty() ? json() : json::parse(before, nullptr, false), seconds});
  } catch (const json::exception& failed) {
    throw Error(exit_code::missing, std::string("the broker's status is not complete: ") + failed.what());
  }
}

std::string read_status(const std::filesystem::path& runtime_dir) {
  return read_to_end(connect_to(runtime_dir / "ivgpud.status"));
}

int status(const StatusOptions& options) {
  if (options.watch_s > 0) watch(options);
  const std::string document = read_status(options.runtime_dir);
  say(options.json ? document : status_as_text(document));
  return 0;
}

}  // namespace ivgpu
