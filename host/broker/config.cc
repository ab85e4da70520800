#include "host/broker/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/broker/config_node.h"
#include "host/broker/toml_guard.h"
#include "host/broker/worker_users.h"
#include "ring/bells.h"

namespace host::broker {
namespace {

constexpr std::int64_t worker_bytes = 1 << 30;   // a driver's own in a worker: 200 to 500 MB, more where it compiles
constexpr std::int64_t least_beside = 64 << 20;  // the simulated GPU's own need

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

// A sentence may quote a text that has ends of lines itself.
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
    for (const Key& key : all_keys()) {
      if (key.table != which) continue;
      const toml::table parsed = toml::parse("v = " + fallback_of(key, cores_));
      const auto value = value_of(key, *parsed.get("v"));
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
      const auto value = value_of(*key, node);
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
      if (!is_vm_name(vm.name)) {
        return say(
            fmt::format("[{}]: a VM's name has 1 to 63 letters, digits, '-', '_' and '.', "
                        "and begins with a letter or digit",
                        title));
      }
      if (!node.is_table()) return say(fmt::format("[vm] {} must be a table, as in [{}]", vm.name, title));
      if (!overlay("vm", title, node.as_table(), vm) || !fits(title, vm) || !good_file(title, vm)) return false;
      if (!settle_memory(title, vm) || !has_share(title, vm)) return false;
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
    note_own_users(config_.vms);
    return true;
  }

  bool fits(const std::string& title, const VmOptions& vm) {
    const auto bytes = static_cast<std::size_t>(vm.region_size), slots = static_cast<std::size_t>(vm.slots);
    if (ring::slot_bytes_for(bytes, static_cast<std::uint32_t>(slots)) >= ring::min_slot_bytes) return true;
    return say(fmt::format("[{}] region_size of {} MiB is too small for {} slots, which need {} MiB at least", title,
                           bytes >> 20, slots, (ring::first_slot_offset + slots * ring::min_slot_bytes) >> 20));
  }

  // Each page of the region belongs to the process that touches it first, so its workers must be able to have them all.
  bool settle_memory(const std::string& title, VmOptions& vm) {
    if (vm.memory_max == automatic) vm.memory_max = vm.region_size + vm.slots * (vm.session_image_bytes + worker_bytes);
    if (vm.memory_max == 0 || vm.memory_max >= vm.region_size + least_beside) return true;
    return say(fmt::format("[{}] memory_max of {} MiB is too small for a region_size of {} MiB: {} MiB at least", title,
                           vm.memory_max >> 20, vm.region_size >> 20, (vm.region_size + least_beside) >> 20));
  }

  // A bound that nobody would keep is a mistake: who lowers it relies on it.
  bool has_share(const std::string& title, const VmOptions& vm) {
    if (vm.active_threads == 100 || config_.gpu.policy == "mps") return true;
    return say(fmt::format("[{}] active_threads = {} goes with policy = \"mps\" in [gpu], which says \"{}\"", title,
                           vm.active_threads, config_.gpu.policy));
  }

  // Two VMs must not share one memory, and a key that is set without effect is a mistake.
  bool good_file(const std::string& title, const VmOptions& vm) {
    if (vm.plain_file.empty()) return true;
    if (!opened_by_path(vm))
      return say(fmt::format("[{}] plain_file goes with transport = \"plain\" or \"pmem\"", title));
    if (vm.huge_pages)
      return say(
          fmt::format("[{}] huge_pages is for a memfd: a plain_file has huge pages where it lies on hugetlbfs", title));
    for (const VmOptions& other : config_.vms)
      if (other.plain_file == vm.plain_file)
        return say(fmt::format("[{}] plain_file = \"{}\" is that of [vm.{}]", title, vm.plain_file, other.name));
    return true;
  }

  static const Key* find(std::string_view which, std::string_view name) {
    const auto keys = all_keys();
    const auto found =
        std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.table == which && k.name == name; });
    return found == keys.end() ? nullptr : &*found;
  }
  static std::string names(std::string_view which) {
    std::string all;
    for (const Key& key : all_keys())
      if (key.table == which) all += (all.empty() ? "" : ", ") + std::string(key.name);
    return all;
  }

  std::string file_;
  unsigned cores_;
  Config& config_;
  std::string error_;
};

}  // namespace

bool is_vm_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() >= sizeof(ring::RegionHeader::vm) || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || c == '-' || c == '_' || c == '.'; });
}

std::uint32_t guest_vectors(const VmOptions& options) {
  if (options.transport == "plain") return 0;
  return static_cast<std::uint32_t>(options.transport == "pmem" ? options.slots
                                                                : std::min(options.vectors, options.slots));
}

std::size_t region_start(const VmOptions& options) { return options.transport == "pmem" ? ring::devdax_start : 0; }

std::size_t memory_bytes(const VmOptions& options) {
  return region_start(options) + static_cast<std::size_t>(options.region_size);
}

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

bool read_config(const std::string& path, unsigned cores, Config& config, std::string& error) {
  namespace fs = std::filesystem;
  std::ifstream file(path);
  std::stringstream text;
  if (!file || fs::is_directory(path) || !(text << file.rdbuf())) {
    error = fmt::format("{}: cannot be read{}", path, fs::exists(path) ? " or is empty" : ": there is no such file");
    return false;
  }
  return parse_config(text.str(), path, cores, config, error);
}

}  // namespace host::broker
