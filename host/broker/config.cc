#include "host/broker/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <variant>

#include "host/broker/toml.h"
#include "host/broker/toml_guard.h"
#include "host/broker/worker_users.h"
#include "ring/layout.h"

namespace host::broker {
namespace {

enum class Kind { Integer, Size, Mode, Boolean, Text, Choice, Users, List, Limit, Processors };

using Member = std::variant<std::string BrokerOptions::*, std::int64_t BrokerOptions::*, std::string GpuOptions::*,
                            std::int64_t VmOptions::*, std::string VmOptions::*, bool VmOptions::*,
                            std::vector<std::string> VmOptions::*>;

struct Key {
  const char* table;  // broker, gpu; vm stands for [defaults] and every [vm.NAME]
  const char* name;
  Kind kind;
  const char* fallback;  // the default as it would stand in the file; in words where `by_cores` gives it
  std::int64_t (*by_cores)(unsigned cores);
  std::int64_t least, most;  // of numbers
  const char* allowed;       // completes "KEY takes ..."
  const char* help;
  Member member;
};

constexpr std::int64_t mebi = 1 << 20, tebi = mebi << 20;
constexpr std::int64_t last_id = 4294967294;     // -1 means "none" to the kernel
constexpr std::int64_t nobody = 65534;           // whom other programs may run as, too
constexpr std::int64_t automatic = -1;           // a limit that is worked out from other keys
constexpr std::int64_t worker_bytes = 1 << 30;   // a driver's own in a worker: 200 to 500 MB, more where it compiles
constexpr std::int64_t least_beside = 64 << 20;  // what the simulated GPU needs

using B = BrokerOptions;
using V = VmOptions;

// Each worker that polls has a guest that polls, too. With two cores or fewer these would only take turns.
std::int64_t half_of(unsigned cores) {
  return cores <= 2 ? 0 : std::clamp<std::int64_t>(cores / 2, 2, ring::max_slots);
}

// Every key there is.
const Key keys[] = {
    {"broker", "runtime_dir", Kind::Text, "\"/run/ivgpu\"", nullptr, 0, 0, "the path of a folder, beginning with /",
     "Where the sockets lie: <runtime_dir>/<vm>.sock. Made if it is not there.", &B::runtime_dir},
    {"broker", "socket_mode", Kind::Mode, "\"0660\"", nullptr, 0, 0777, "permissions in octal, as \"0660\"",
     "Who may connect to a VM's socket, and so use its GPU, and to the broker's for its status.", &B::socket_mode},
    {"broker", "socket_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the broker's own",
     "The sockets' user. Only root can give them to another.", &B::socket_owner},
    {"broker", "socket_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the broker's own", "The sockets' group, usually the one QEMU runs in.",
     &B::socket_group},
    {"broker", "trace_mode", Kind::Mode, "\"0600\"", nullptr, 0, 0777, "permissions in octal, as \"0600\"",
     "Who may see the calls and arguments of all VMs by `ivgpu trace`.", &B::trace_mode},
    {"broker", "trace_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the broker's own", "That socket's user.", &B::trace_owner},
    {"broker", "trace_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the broker's own", "That socket's group.", &B::trace_group},
    {"broker", "worker_uids", Kind::Users, "\"\"", nullptr, 0, 0,
     "a range of numbers of users, as \"200000-200063\", or \"\" for none",
     "The n-th VM of the file gets the n-th as worker_uid and worker_gid, where it does not say them. Needs root.",
     &B::worker_uids},
    {"broker", "log_level", Kind::Choice, "\"info\"", nullptr, 0, 0, "\"debug\", \"info\", \"warning\" or \"error\"",
     "How much is logged to the standard error output.", &B::log_level},
    {"broker", "worker", Kind::Text, "\"\"", nullptr, 0, 0,
     "the path of ivgpu-worker, or \"\" for the one beside ivgpud", "The program that serves one guest process.",
     &B::worker},
    {"broker", "cgroups", Kind::Choice, "\"best-effort\"", nullptr, 0, 0, "\"best-effort\", \"required\" or \"off\"",
     "Whether each VM's workers get a control group (version 2), which memory_max, pids_max and cpu_max need.",
     &B::cgroups},

    {"gpu", "library", Kind::Text, "\"auto\"", nullptr, 0, 0,
     "\"auto\", \"sim\" or the path of a libcuda.so.1, beginning with /",
     "Which driver: the system's (auto), the simulated GPU (sim), or the one at a path.", &GpuOptions::library},

    {"vm", "region_size", Kind::Size, "\"1GiB\"", nullptr, 16 * mebi, tebi, "a power of two from \"16MiB\" to \"1TiB\"",
     "The memory that the VM and its workers share: BAR2 of the VM's device.", &V::region_size},
    {"vm", "slots", Kind::Integer, "8", nullptr, 1, ring::max_slots, "an integer from 1 to 64",
     "How many guest processes can use the GPU at the same time. The region is divided equally.", &V::slots},
    {"vm", "spare", Kind::Integer, "1", nullptr, 0, ring::max_slots, "an integer from 0 to 64",
     "Workers started ahead, so that a program starts at once. Each holds device memory.", &V::spare},
    {"vm", "spin_threads", Kind::Integer, "half of the processors, at least 2; 0 where there are two or fewer", half_of,
     0, ring::max_slots, "an integer from 0 to 64",
     "How many of the VM's workers may poll before they sleep. 0: its guests sleep at once, too.", &V::spin_threads},
    {"vm", "spin_us", Kind::Integer, "50", nullptr, 0, ring::longest_spin_us, "an integer from 0 to 10000",
     "How many microseconds such a worker polls at most; it polls less while that does not pay.", &V::spin_us},
    {"vm", "wait_spin_ms", Kind::Integer, "20", nullptr, 0, 60000, "an integer from 0 to 60000",
     "How many milliseconds a wait may spin in the driver while another of its session does; then it pauses. 0: for "
     "ever.",
     &V::wait_spin_ms},
    {"vm", "starts_per_second", Kind::Integer, "20", nullptr, 1, 1000, "an integer from 1 to 1000",
     "How many workers are started per second at most, in the long run.", &V::starts_per_second},
    {"vm", "start_burst", Kind::Integer, "32", nullptr, 1, 1000, "an integer from 1 to 1000",
     "How many workers may be started at once after a pause.", &V::start_burst},
    {"vm", "connections", Kind::Integer, "128", nullptr, 1, 4096, "an integer from 1 to 4096",
     "How many processes may be connected to the VM's socket.", &V::connections},
    {"vm", "socket_mode", Kind::Mode, "\"\"", nullptr, -1, 0777,
     "permissions in octal, as \"0660\", or \"\" for those in [broker]",
     "Who may connect to the VM's socket, or open its plain_file, and so use its GPU.", &V::socket_mode},
    {"vm", "socket_owner", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a user, or \"\" for the one in [broker]",
     "The socket's user. A plain_file stays the broker's own.", &V::socket_owner},
    {"vm", "socket_group", Kind::Text, "\"\"", nullptr, 0, 0,
     "the name or number of a group, or \"\" for the one in [broker]", "The group of socket or plain_file.",
     &V::socket_group},
    {"vm", "gpus", Kind::List, "\"all\"", nullptr, 0, 0,
     "\"all\", or an array of GPUs, each by its index, its UUID (or how that begins) or its PCI address",
     "Which of the host's GPUs the VM's guests see, in this order and by ordinals of their own.", &V::gpus},
    {"vm", "jail", Kind::Choice, "\"best-effort\"", nullptr, 0, 0, "\"best-effort\", \"required\" or \"off\"",
     "Whether a worker starts where the kernel does not give every layer of its jail.", &V::jail},
    {"vm", "jail_ioctls", Kind::Choice, "\"listed\"", nullptr, 0, 0, "\"listed\" or \"any\"",
     "Which requests a worker may make of NVIDIA's kernel modules: those of a list that is one driver's, or any.",
     &V::jail_ioctls},
    {"vm", "worker_uid", Kind::Integer, "65534", nullptr, 1, last_id, "an integer from 1 to 4294967294",
     "The user that workers run as, when the broker is root.", &V::worker_uid},
    {"vm", "worker_gid", Kind::Integer, "65534", nullptr, 1, last_id, "an integer from 1 to 4294967294",
     "The group that workers run as, when the broker is root.", &V::worker_gid},
    {"vm", "huge_pages", Kind::Boolean, "false", nullptr, 0, 0, "true or false",
     "Takes the region from the machine's pool of 2 MiB pages, all of it at the start.", &V::huge_pages},
    {"vm", "transport", Kind::Choice, "\"doorbell\"", nullptr, 0, 0, "\"doorbell\" or \"plain\"",
     "Which device the VM has: ivshmem-doorbell, or ivshmem-plain, where the broker must look for rings.",
     &V::transport},
    {"vm", "plain_file", Kind::Text, "\"\"", nullptr, 0, 0,
     "the path of a file in /dev/shm or on hugetlbfs, beginning with /, or \"\" for a memfd",
     "With \"plain\": the file that QEMU opens. It is made at the start and removed at the end.", &V::plain_file},
    {"vm", "bell_us", Kind::Integer, "200", nullptr, 50, 1000000, "an integer from 50 to 1000000",
     "With \"plain\": how often the broker looks for rings until a second after the last, in microseconds.",
     &V::bell_us},
    {"vm", "bell_idle_ms", Kind::Integer, "20", nullptr, 1, 500, "an integer from 1 to 500",
     "With \"plain\": how often it looks when nobody has rung for a second, in milliseconds.", &V::bell_idle_ms},
    {"vm", "chaos_delay_us", Kind::Integer, "0", nullptr, 0, 1000000, "an integer from 0 to 1000000",
     "For tests: random delays up to this many microseconds between a worker's records.", &V::chaos_delay_us},
    {"vm", "session_image_bytes", Kind::Size, "\"2GiB\"", nullptr, mebi, tebi,
     "a power of two from \"1MiB\" to \"1TiB\"",
     "How many bytes of code images a program may have loaded. An image that is being loaded counts twice, one that is "
     "packed by its size unpacked as well.",
     &V::session_image_bytes},
    {"vm", "session_objects", Kind::Integer, "262144", nullptr, 64, 1048575, "an integer from 64 to 1048575",
     "How many things a program may have: streams, events, modules, functions, kernels, globals, allocations.",
     &V::session_objects},
    {"vm", "memory_max", Kind::Limit, "\"auto\"", nullptr, mebi, 16 * tebi,
     "a size such as \"6GiB\", \"auto\" or \"none\"",
     "How much memory the VM's workers may have together, the parts of the region that they touch first included; "
     "beyond it the largest is killed. \"auto\": region_size, and session_image_bytes and 1 GiB for each slot.",
     &V::memory_max},
    {"vm", "pids_max", Kind::Integer, "4096", nullptr, 0, 4194304, "an integer from 0 to 4194304; 0: no bound",
     "How many threads the VM's workers may have together. Without control groups it holds where worker_uid is this "
     "VM's alone and not 65534.",
     &V::pids_max},
    {"vm", "cpu_max", Kind::Processors, "\"none\"", nullptr, 10, 1024 * 1000,
     "a number of processors such as \"4\" or \"2.5\", or \"none\"",
     "How much processor time the VM's workers may have together.", &V::cpu_max},
};

std::string fallback_of(const Key& key, unsigned cores) {
  return key.by_cores == nullptr ? key.fallback : std::to_string(key.by_cores(cores));
}

// ---- one value -----------------------------------------------------------------------------------------------------

std::optional<std::int64_t> to_number(std::string_view text, int base) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> to_size(std::string_view text) {
  static constexpr std::pair<std::string_view, int> units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, shift] : units) {
    if (!text.ends_with(unit)) continue;
    const auto number = to_number(text.substr(0, text.size() - unit.size()), 10);
    if (!number || *number < 0 || *number > tebi >> shift << 4) return std::nullopt;
    return *number << shift;
  }
  return std::nullopt;
}

// "2.5" in thousandths: at most three digits behind the point.
std::optional<std::int64_t> to_thousandths(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  const std::string_view behind = point < text.size() ? text.substr(point + 1) : "0";
  if (digits.empty() || digits.size() > 6 || behind.empty() || behind.size() > 3) return std::nullopt;
  digits.append(behind).append(3 - behind.size(), '0');
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return to_number(digits, 10);
}

using List = std::vector<std::string>;
using Value = std::variant<std::int64_t, std::string, bool, List>;

// Whether a text is one of those that `allowed` names in quotes.
bool is_choice(const char* allowed, const std::string& text) {
  if (text.find('"') != std::string::npos) return false;  // or two of them with what stands between would be one
  return std::string_view(allowed).find('"' + text + '"') != std::string_view::npos;
}

bool begins_with_slash(const Key& key) {
  return std::string_view(key.allowed).find("beginning with /") != std::string_view::npos;
}

bool good_text(const Key& key, const std::string& text) {
  if (text.find('\0') != std::string::npos || text.size() > 4000) return false;
  if (!begins_with_slash(key)) return true;
  return text.starts_with('/') || is_choice(key.allowed, text);
}

std::optional<Value> in_range(const Key& key, std::optional<std::int64_t> number) {
  if (!number || *number < key.least || *number > key.most) return std::nullopt;
  if (key.kind == Kind::Size && (*number & (*number - 1)) != 0) return std::nullopt;
  return Value(*number);
}

// With a least value of -1, "" is that.
std::optional<Value> to_mode(const Key& key, const std::string& text) {
  if (text.empty() || text[0] == '-') return text.empty() ? in_range(key, -1) : std::nullopt;
  return in_range(key, to_number(text, 8));
}

// Texts and numbers, of which there is at least one. The one word that is allowed instead is the empty list.
std::optional<Value> to_list(const Key& key, const toml::node& node) {
  if (const auto word = node.is_string() ? node.value<std::string>() : std::nullopt)
    return is_choice(key.allowed, *word) ? std::optional<Value>(List()) : std::nullopt;
  if (!node.is_array() || node.as_array()->empty()) return std::nullopt;
  List list;
  for (const toml::node& element : *node.as_array()) {
    std::string text;
    if (element.is_string()) text = *element.value<std::string>();
    if (element.is_integer()) text = std::to_string(*element.value<std::int64_t>());
    if (text.empty() || !good_text(key, text)) return std::nullopt;
    list.push_back(text);
  }
  return list;
}

// A bound, where a word may stand for one.
std::optional<Value> check_limit(const Key& key, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  if (*text == "none") return Value(std::int64_t{0});
  if (key.kind == Kind::Processors) return in_range(key, to_thousandths(*text));
  return *text == "auto" ? std::optional<Value>(automatic) : in_range(key, to_size(*text));
}

std::optional<Value> check(const Key& key, const toml::node& node) {
  const auto text = node.is_string() ? node.value<std::string>() : std::nullopt;
  switch (key.kind) {
    case Kind::Integer: return in_range(key, node.is_integer() ? node.value<std::int64_t>() : std::nullopt);
    case Kind::Size: return in_range(key, text ? to_size(*text) : std::nullopt);
    case Kind::Mode: return text ? to_mode(key, *text) : std::nullopt;
    case Kind::Users:
      return text && (text->empty() || to_user_range(*text)) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::Boolean: return node.is_boolean() ? std::optional<Value>(*node.value<bool>()) : std::nullopt;
    case Kind::Choice: return text && is_choice(key.allowed, *text) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::Limit:
    case Kind::Processors: return check_limit(key, text);
    case Kind::Text: return text && good_text(key, *text) ? std::optional<Value>(*text) : std::nullopt;
    case Kind::List: return to_list(key, node);
  }
  return std::nullopt;
}

// ---- tables --------------------------------------------------------------------------------------------------------

template <class Class, class T>
void store(const Key& key, Class& object, const Value& value) {
  if (const auto* member = std::get_if<T Class::*>(&key.member)) object.*(*member) = std::get<T>(value);
}

void assign(const Key& key, BrokerOptions& object, const Value& value) {
  store<BrokerOptions, std::string>(key, object, value);
  store<BrokerOptions, std::int64_t>(key, object, value);
}
void assign(const Key& key, GpuOptions& object, const Value& value) {
  store<GpuOptions, std::string>(key, object, value);
}
void assign(const Key& key, VmOptions& object, const Value& value) {
  store<VmOptions, std::int64_t>(key, object, value);
  store<VmOptions, std::string>(key, object, value);
  store<VmOptions, bool>(key, object, value);
  store<VmOptions, List>(key, object, value);
}

std::string as_written(const toml::node& node) {
  std::string text;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_table<decltype(value)>) {
      text = "a table";
    } else if constexpr (toml::is_array<decltype(value)>) {
      for (const toml::node& element : value) text += (text.empty() ? "" : ", ") + as_written(element);
      text = '[' + text + ']';
    } else if constexpr (toml::is_string<decltype(value)>) {
      text = '"' + value.get() + '"';
    } else {
      std::ostringstream out;
      out << value;
      text = out.str();
    }
  });
  return text;
}

// What a sentence quotes may itself have ends of lines.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

class Parser {
 public:
  Parser(std::string file, unsigned cores, Config& config) : file_(std::move(file)), cores_(cores), config_(config) {}

  bool parse(const toml::table& root) {
    for (const auto& [name, node] : root) {
      const std::string_view known = name.str();
      if (known != "broker" && known != "gpu" && known != "defaults" && known != "vm") {
        return say(fmt::format("[{}] is not known; the tables are [broker], [gpu], [defaults] and [vm.NAME]", known));
      }
      if (!node.is_table()) return say(fmt::format("'{}' must be a table, as in [{}]", known, known));
    }
    VmOptions defaults;
    return table("broker", "broker", root["broker"].as_table(), config_.broker) &&
           table("gpu", "gpu", root["gpu"].as_table(), config_.gpu) && defaults_of("vm", defaults) &&
           overlay("vm", "defaults", root["defaults"].as_table(), defaults) && vms(root["vm"].as_table(), defaults) &&
           users(root);
  }
  const std::string& error() const { return error_; }

 private:
  bool say(const std::string& what) {
    error_ = file_ + ": " + one_line(what);
    return false;
  }

  // The table's defaults go through the same checks as the file.
  template <class Object>
  bool defaults_of(std::string_view which, Object& object) {
    for (const Key& key : keys) {
      if (key.table != which) continue;
      const toml::table parsed = toml::parse("v = " + fallback_of(key, cores_));
      const auto value = check(key, *parsed.get("v"));
      if (!value) return say(fmt::format("the default of {} is not {}", key.name, key.allowed));
      assign(key, object, *value);
    }
    return true;
  }

  template <class Object>
  bool overlay(std::string_view which, const std::string& title, const toml::table* given, Object& object) {
    if (given == nullptr) return true;
    for (const auto& [name, node] : *given) {
      const Key* key = find(which, name.str());
      if (key == nullptr) {
        return say(fmt::format("[{}] has no key '{}'; it takes {}", title, name.str(), names(which)));
      }
      const auto value = check(*key, node);
      if (!value) {
        return say(
            fmt::format("[{}] {} = {}: {} takes {}", title, key->name, as_written(node), key->name, key->allowed));
      }
      assign(*key, object, *value);
    }
    return true;
  }

  template <class Object>
  bool table(std::string_view which, const std::string& title, const toml::table* given, Object& object) {
    return defaults_of(which, object) && overlay(which, title, given, object);
  }

  bool vms(const toml::table* given, const VmOptions& defaults) {
    if (given == nullptr || given->empty()) return say("there is no VM; add a table [vm.NAME], which may be empty");
    for (const auto& [name, node] : *given) {
      VmOptions vm = defaults;
      vm.name = name.str();
      const std::string title = "vm." + vm.name;
      if (!good_name(vm.name)) {
        return say(
            fmt::format("[{}]: a VM's name has 1 to 63 letters, digits, '-', '_' and '.', "
                        "and begins with a letter or digit",
                        title));
      }
      if (!node.is_table()) return say(fmt::format("[vm] {} must be a table, as in [{}]", vm.name, title));
      if (!overlay("vm", title, node.as_table(), vm) || !fits(title, vm) || !good_file(title, vm)) return false;
      if (!settle_memory(title, vm)) return false;
      inherit(vm);
      config_.vms.push_back(vm);
    }
    return true;
  }

  void inherit(VmOptions& vm) const {
    const BrokerOptions& broker = config_.broker;
    if (vm.socket_mode < 0) vm.socket_mode = broker.socket_mode;
    if (vm.socket_owner.empty()) vm.socket_owner = broker.socket_owner;
    if (vm.socket_group.empty()) vm.socket_group = broker.socket_group;
  }

  // The table's order is that of the names; VMs are counted in the order of the file.
  bool users(const toml::table& root) {
    const toml::table* defaults = root["defaults"].as_table();
    const auto in_defaults = [&](const char* key) { return defaults != nullptr && defaults->contains(key); };
    if (!config_.broker.worker_uids.empty() && in_defaults("worker_uid"))
      return say("[defaults] worker_uid is one user for all VMs; leave it out, or [broker] worker_uids");
    std::vector<std::pair<std::uint32_t, UserWish>> wishes;
    for (VmOptions& vm : config_.vms) {
      const toml::table& table = *root["vm"][vm.name].as_table();
      wishes.push_back(
          {table.source().begin.line,
           {&vm, table.contains("worker_uid"), table.contains("worker_gid") || in_defaults("worker_gid")}});
    }
    std::stable_sort(wishes.begin(), wishes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<UserWish> in_order;
    for (const auto& [line, wish] : wishes) in_order.push_back(wish);
    std::string why;
    if (!give_users(config_.broker.worker_uids, in_order, why)) return say(why);
    for (VmOptions& vm : config_.vms) vm.own_uid = is_own_uid(vm);
    return true;
  }

  // A VM's name is a file's name and stands in the region's header.
  static bool good_name(const std::string& name) {
    const auto letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    if (name.empty() || name.size() >= sizeof(ring::RegionHeader::vm) || !letter(name[0])) return false;
    return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || c == '-' || c == '_' || c == '.'; });
  }

  bool fits(const std::string& title, const VmOptions& vm) {
    const auto bytes = static_cast<std::size_t>(vm.region_size), slots = static_cast<std::size_t>(vm.slots);
    if (ring::slot_bytes_for(bytes, static_cast<std::uint32_t>(slots)) >= ring::min_slot_bytes) return true;
    return say(fmt::format("[{}] region_size of {} MiB is too small for {} slots, which need {} MiB at least", title,
                           bytes >> 20, slots, (ring::first_slot_offset + slots * ring::min_slot_bytes) >> 20));
  }

  // The pages of the region belong to who touches them first, so its workers must be able to have them all.
  bool settle_memory(const std::string& title, VmOptions& vm) {
    if (vm.memory_max == automatic) vm.memory_max = vm.region_size + vm.slots * (vm.session_image_bytes + worker_bytes);
    if (vm.memory_max == 0 || vm.memory_max >= vm.region_size + least_beside) return true;
    return say(fmt::format("[{}] memory_max of {} MiB is too small for a region_size of {} MiB: {} MiB at least", title,
                           vm.memory_max >> 20, vm.region_size >> 20, (vm.region_size + least_beside) >> 20));
  }

  bool is_own_uid(const VmOptions& vm) const {
    return vm.worker_uid != nobody &&
           std::count_if(config_.vms.begin(), config_.vms.end(),
                         [&](const VmOptions& other) { return other.worker_uid == vm.worker_uid; }) == 1;
  }

  // Two VMs must not share one memory, and what is set without an effect is a mistake.
  bool good_file(const std::string& title, const VmOptions& vm) {
    if (vm.plain_file.empty()) return true;
    if (vm.transport != "plain") return say(fmt::format("[{}] plain_file goes with transport = \"plain\"", title));
    if (vm.huge_pages)
      return say(
          fmt::format("[{}] huge_pages is for a memfd: a plain_file has huge pages where it lies on hugetlbfs", title));
    for (const VmOptions& other : config_.vms)
      if (other.plain_file == vm.plain_file)
        return say(fmt::format("[{}] plain_file = \"{}\" is that of [vm.{}]", title, vm.plain_file, other.name));
    return true;
  }

  static const Key* find(std::string_view which, std::string_view name) {
    const auto* found = std::find_if(std::begin(keys), std::end(keys),
                                     [&](const Key& k) { return k.table == which && k.name == name; });
    return found == std::end(keys) ? nullptr : found;
  }
  static std::string names(std::string_view which) {
    std::string all;
    for (const Key& key : keys)
      if (key.table == which) all += (all.empty() ? "" : ", ") + std::string(key.name);
    return all;
  }

  std::string file_;
  unsigned cores_;
  Config& config_;
  std::string error_;
};

}  // namespace

bool parse_config(std::string text, const std::string& file, unsigned cores, Config& config, std::string& error) {
  if (const auto unfit = prepare_for_toml(text)) {
    error = fmt::format("{}:{}: {}", file, unfit->line, unfit->why);
    return false;
  }
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& failed) {
    error = fmt::format("{}:{}:{}: {}", file, failed.source().begin.line, failed.source().begin.column,
                        one_line(std::string(failed.description())));
    return false;
  } catch (const TomlSurprised&) {
    error = fmt::format("{}: this is no TOML", file);
    return false;
  }
  Parser parser(file, cores, config);
  if (parser.parse(root)) return true;
  error = parser.error();
  return false;
}

std::vector<KeyInWords> keys_in_words() {
  static constexpr const char* types[] = {"integer", "size, as text", "octal number, as text", "boolean", "text",
                                          "text",    "text",          "array, or text",        "text",    "text"};
  std::vector<KeyInWords> all;
  for (const Key& key : keys) {
    const std::string quote = key.by_cores == nullptr ? "`" : "";
    all.push_back(
        {key.table, key.name, types[static_cast<int>(key.kind)], quote + key.fallback + quote, key.allowed, key.help});
  }
  return all;
}

std::string default_config(unsigned cores) {
  std::string text = "# Every key of ivgpud with its default.\n";
  std::string_view table;
  for (const Key& key : keys) {
    if (key.table != table) {
      table = key.table;
      text += table == "vm" ? "\n# For all VMs; a [vm.NAME] may have each of these keys for itself.\n[defaults]\n"
                            : fmt::format("\n[{}]\n", table);
    }
    text += fmt::format("# {}\n# Takes {}.\n{} = {}\n", key.help, key.allowed, key.name, fallback_of(key, cores));
  }
  return text + "\n# One table for each VM; its socket is <runtime_dir>/NAME.sock.\n[vm.example]\n";
}

}  // namespace host::broker
