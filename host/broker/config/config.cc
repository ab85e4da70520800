#include "host/broker/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/base/vsock.h"
#include "host/broker/config/config_node.h"
#include "host/broker/config/drop_ins.h"
#include "host/broker/config/toml_guard.h"
#include "host/broker/config/worker_users.h"
#include "ring/layout/doorbell_channel.h"

namespace host::broker {
namespace {

constexpr std::int64_t worker_bytes = 1 << 30;   // for the driver: 200 to 500 MB, more if it compiles
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

// A quoted value may contain line ends.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

constexpr const char* no_vm = "there is no VM; add a table [vm.NAME], which may be empty";
constexpr const char* names_of_vms =
    "a VM's name has 1 to 63 letters, digits, '-', '_' and '.', and begins with a letter or digit";

// Parses the broker's file first, then the drop-in files of single VMs. Its [defaults] apply to both.
class Parser {
 public:
  Parser(std::string file, unsigned cores, Config& config)
      : broker_file_(std::move(file)), file_(broker_file_), cores_(cores), config_(config) {}

  // May leave the configuration without a VM.
  bool parse(const toml::table& root) {
    for (const auto& [name, node] : root) {
      const std::string_view known = name.str();
      if (known != "broker" && known != "gpu" && known != "defaults" && known != "vm") {
        return fail(fmt::format("[{}] is not known; the tables are [broker], [gpu], [defaults] and [vm.NAME]", known));
      }
      if (!node.is_table()) return fail(fmt::format("'{}' must be a table, as in [{}]", known, known));
    }
    const toml::table* defaults = root["defaults"].as_table();
    gid_in_defaults_ = defaults != nullptr && defaults->contains("worker_gid");
    return table("broker", "broker", root["broker"].as_table(), config_.broker) &&
           table("gpu", "gpu", root["gpu"].as_table(), config_.gpu) && defaults_of("vm", defaults_) &&
           overlay("vm", "defaults", defaults, defaults_) && vms(root["vm"].as_table()) && users(defaults);
  }

  // Adds the VM of a drop-in file. If false, nothing was added.
  bool add(const DropIn& drop_in, const toml::table& root) {
    file_ = drop_in.path;
    const toml::table* table = root["vm"].as_table();
    const toml::node* node = table != nullptr ? table->get(drop_in.vm) : nullptr;
    if (!is_vm_name(drop_in.vm)) return fail(fmt::format("it is named as its VM is: {}", names_of_vms));
    if (root.size() != 1 || node == nullptr || table->size() != 1)
      return fail(fmt::format("it takes one table, [vm.{}], which is named as the file is", drop_in.vm));
    for (const VmOptions& other : config_.vms)
      if (other.name == drop_in.vm)
        return fail(
            fmt::format("[vm.{}] stands in {}, too", other.name, other.file.empty() ? broker_file_ : other.file));
    if (!vm(drop_in.vm, *node, drop_in.path)) return false;
    const auto given = give_all_users();
    if (!given) {
      wishes_.pop_back();
      config_.vms.pop_back();
      return fail(given.error().message);
    }
    return true;
  }

  bool fail(const std::string& what) {
    error_ = file_ + ": " + one_line(what);
    return false;
  }
  const std::string& error() const { return error_; }

 private:
  // Runs the table's defaults through the same checks as the file.
  template <class Object>
  bool defaults_of(std::string_view which, Object& object) {
    for (const Key& key : all_keys()) {
      if (key.table != which) continue;
      const toml::table parsed = toml::parse("v = " + fallback_of(key, cores_));
      const auto value = value_of(key, *parsed.get("v"));
      if (!value) return fail(fmt::format("the default of {} is not {}", key.name, key.allowed));
      assign(key, object, *value);
    }
    return true;
  }

  template <class Object>
  bool overlay(std::string_view which, const std::string& title, const toml::table* given, Object& object) {
    if (given == nullptr) return true;
    for (const auto& [name, node] : *given) {
      const Key* key = find(which, renamed_key(which, name.str(), title));
      if (key == nullptr && was_key(which, name.str(), title)) continue;
      if (key == nullptr) {
        return fail(fmt::format("[{}] has no key '{}'; it takes {}", title, name.str(), names(which)));
      }
      if (key->name == std::string_view("policy") && as_written(node) == "\"turns\"") {
        config_.remarks.push_back(
            fmt::format("{}: [{}] policy = \"turns\" is \"shared\" by now (docs/configuration.md)", file_, title));
        config_.gpu.policy = "shared";
        continue;
      }
      const auto value = value_of(*key, node);
      if (!value) {
        return fail(
            fmt::format("[{}] {} = {}: {} takes {}", title, key->name, as_written(node), key->name, key->allowed));
      }
      assign(*key, object, *value);
    }
    return true;
  }

  // Obsolete keys: they are accepted for one more release and have no effect.
  bool was_key(std::string_view which, std::string_view name, const std::string& title) {
    const bool known = which == "gpu" && (name == "quantum_us" || name == "longest_turn_ms");
    if (known)
      config_.remarks.push_back(
          fmt::format("{}: [{}] {} does nothing any more: leases replace turns, and longest_lease_ms bounds them",
                      file_, title, name));
    return known;
  }

  // The old name of a renamed key is accepted for one more release. The table is in the order of the names, so the new holds.
  std::string_view renamed_key(std::string_view which, std::string_view name, const std::string& title) {
    static constexpr std::pair<std::string_view, std::string_view> renamed[] = {
        {"bell_us", "doorbell_poll_us"}, {"bell_idle_ms", "doorbell_idle_poll_ms"}};
    for (const auto& [old, now] : renamed) {
      if (which != "vm" || name != old) continue;
      config_.remarks.push_back(
          fmt::format("{}: [{}] {} is {} by now (docs/configuration.md)", file_, title, old, now));
      return now;
    }
    return name;
  }

  template <class Object>
  bool table(std::string_view which, const std::string& title, const toml::table* given, Object& object) {
    return defaults_of(which, object) && overlay(which, title, given, object);
  }

  bool vms(const toml::table* given) {
    if (given == nullptr) return true;
    for (const auto& [name, node] : *given)
      if (!vm(std::string(name.str()), node, "")) return false;
    return true;
  }

  // `file` as in VmOptions.
  bool vm(const std::string& name, const toml::node& node, const std::string& file) {
    VmOptions vm = defaults_;
    vm.name = name;
    vm.file = file;
    const std::string title = "vm." + vm.name;
    if (!is_vm_name(vm.name)) return fail(fmt::format("[{}]: {}", title, names_of_vms));
    if (!node.is_table()) return fail(fmt::format("[vm] {} must be a table, as in [{}]", vm.name, title));
    if (!overlay("vm", title, node.as_table(), vm) || !fits(title, vm) || !good_file(title, vm) ||
        !good_vsock(title, vm))
      return false;
    if (!resolve_memory(title, vm) || !has_share(title, vm)) return false;
    inherit(vm);
    const toml::table& table = *node.as_table();
    wishes_.push_back({config_.vms.size(), table.source().begin.line, table.contains("worker_uid"),
                       table.contains("worker_gid") || gid_in_defaults_});
    config_.vms.push_back(vm);
    return true;
  }

  void inherit(VmOptions& vm) const {
    const BrokerOptions& broker = config_.broker;
    if (vm.socket_mode < 0) vm.socket_mode = broker.socket_mode;
    if (vm.socket_owner.empty()) vm.socket_owner = broker.socket_owner;
    if (vm.socket_group.empty()) vm.socket_group = broker.socket_group;
  }

  // toml++ sorts a table by name, but worker_uids counts VMs in the order of the file.
  bool users(const toml::table* defaults) {
    if (!config_.broker.worker_uids.empty() && defaults != nullptr && defaults->contains("worker_uid"))
      return fail("[defaults] worker_uid is one user for all VMs; leave it out, or [broker] worker_uids");
    std::stable_sort(wishes_.begin(), wishes_.end(), [](const Wish& a, const Wish& b) { return a.line < b.line; });
    const auto given = give_all_users();
    return given || fail(given.error().message);
  }

  Result<void> give_all_users() {
    std::vector<UserWish> in_order;
    for (const Wish& wish : wishes_) in_order.push_back({&config_.vms[wish.vm], wish.uid_given, wish.gid_given});
    if (const auto given = give_users(config_.broker.worker_uids, in_order); !given) return given.error();
    note_own_users(config_.vms);
    return {};
  }

  bool fits(const std::string& title, const VmOptions& vm) {
    const auto bytes = static_cast<std::size_t>(vm.region_size), slots = static_cast<std::size_t>(vm.slots);
    if (ring::slot_bytes_for(bytes, static_cast<std::uint32_t>(slots)) >= ring::min_slot_bytes) return true;
    return fail(fmt::format("[{}] region_size of {} MiB is too small for {} slots, which need {} MiB at least", title,
                            bytes >> 20, slots, (ring::first_slot_offset + slots * ring::min_slot_bytes) >> 20));
  }

  // The kernel charges a page of the region to the process that touches it first, so the workers' limit must cover all
  // of it.
  bool resolve_memory(const std::string& title, VmOptions& vm) {
    if (vm.memory_max == automatic) vm.memory_max = vm.region_size + vm.slots * (vm.session_image_bytes + worker_bytes);
    if (vm.memory_max == 0 || vm.memory_max >= vm.region_size + least_beside) return true;
    return fail(fmt::format("[{}] memory_max of {} MiB is too small for a region_size of {} MiB: {} MiB at least",
                            title, vm.memory_max >> 20, vm.region_size >> 20, (vm.region_size + least_beside) >> 20));
  }

  // Without MPS nothing would enforce the bound, and the operator would rely on it.
  bool has_share(const std::string& title, const VmOptions& vm) {
    if (vm.active_threads == 100 || config_.gpu.policy == "mps") return true;
    return fail(fmt::format("[{}] active_threads = {} goes with policy = \"mps\" in [gpu], which says \"{}\"", title,
                            vm.active_threads, config_.gpu.policy));
  }

  // Rejects memory shared by two VMs, and keys without effect.
  bool good_file(const std::string& title, const VmOptions& vm) {
    if (vm.plain_file.empty()) return true;
    if (!opened_by_path(vm))
      return fail(fmt::format("[{}] plain_file goes with transport = \"plain\" or \"pmem\"", title));
    if (vm.huge_pages)
      return fail(
          fmt::format("[{}] huge_pages is for a memfd: a plain_file has huge pages where it lies on hugetlbfs", title));
    for (const VmOptions& other : config_.vms)
      if (other.plain_file == vm.plain_file)
        return fail(fmt::format("[{}] plain_file = \"{}\" is that of [vm.{}]", title, vm.plain_file, other.name));
    return true;
  }

  // A connection's CID identifies its VM, so no two VMs share one.
  bool good_vsock(const std::string& title, const VmOptions& vm) {
    const auto wrong = [&](const std::string& why) { return fail(fmt::format("[{}] {}", title, why)); };
    if (vm.vsock_cid == 0 && vm.vsock_port == 0) return true;
    if (vm.transport != "pmem") return wrong("vsock_cid and vsock_port go with transport = \"pmem\"");
    if (vm.vsock_cid == 0 || vm.vsock_port == 0)
      return wrong("vsock_cid and vsock_port go together: QEMU's guest-cid, and a port that is this VM's alone");
    if (vm.vsock_cid == vsock_host)
      return wrong("vsock_cid = 2 is the CID of every host: give the VM another, 3 or more, in QEMU's guest-cid, too");
    if (vm.vsock_port < 1024)
      return wrong(fmt::format("vsock_port = {} is reserved: take 1024 or more", vm.vsock_port));
    for (const VmOptions& other : config_.vms) {
      if (other.vsock_cid == vm.vsock_cid)
        return wrong(fmt::format("vsock_cid = {} is that of [vm.{}]: each VM has its own", vm.vsock_cid, other.name));
      if (other.vsock_port == vm.vsock_port)
        return wrong(fmt::format("vsock_port = {} is that of [vm.{}]: each VM has its own", vm.vsock_port, other.name));
    }
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

  // The order in which VMs are given users.
  struct Wish {
    std::size_t vm;  // index into config_.vms
    std::uint32_t line;
    bool uid_given, gid_given;
  };

  const std::string broker_file_;
  std::string file_;  // the file being read
  const unsigned cores_;
  Config& config_;
  VmOptions defaults_;
  bool gid_in_defaults_ = false;
  std::vector<Wish> wishes_;
  std::string error_;
};

Result<toml::table> parse_text(std::string text, const std::string& file) {
  if (const auto unfit = prepare_for_toml(text)) return Error{fmt::format("{}:{}: {}", file, unfit->line, unfit->why)};
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& failed) {
    return Error{fmt::format("{}:{}:{}: {}", file, failed.source().begin.line, failed.source().begin.column,
                             one_line(std::string(failed.description())))};
  } catch (const TomlSurprised&) {
    return Error{fmt::format("{}: this is no TOML", file)};
  }
}

Result<toml::table> read_table(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::ifstream file(path);
  std::stringstream all;
  if (file && !fs::is_directory(path, failed) && (all << file.rdbuf())) return parse_text(all.str(), path);
  return Error{
      fmt::format("{}: cannot be read{}", path, fs::exists(path, failed) ? " or is empty" : ": there is no such file")};
}

// A mistake in a drop-in file affects its VM alone.
void read_drop_ins(const DropIns& found, Parser& parser, Config& config) {
  config.refused = found.refused;
  config.may_be_empty = found.folders > 0;
  for (const DropIn& drop_in : found.files) {
    const auto root = read_table(drop_in.path);
    if (!root)
      config.refused.push_back({drop_in.vm, root.error().message});
    else if (!parser.add(drop_in, *root))
      config.refused.push_back({drop_in.vm, parser.error()});
  }
}

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

Result<Config> parse_config(std::string text, const std::string& file, unsigned cores) {
  const auto root = parse_text(std::move(text), file);
  if (!root) return root.error();
  Config config;
  Parser parser(file, cores, config);
  if (parser.parse(*root) && (!config.vms.empty() || parser.fail(no_vm))) return config;
  return Error{parser.error()};
}

Result<Config> read_config(const std::string& path, unsigned cores) {
  const auto root = read_table(path);
  if (!root) return root.error();
  Config config;
  Parser parser(path, cores, config);
  if (!parser.parse(*root)) return Error{parser.error()};
  read_drop_ins(find_drop_ins(path, config.broker.runtime_dir), parser, config);
  if (config.vms.empty() && !config.may_be_empty) return Error{fmt::format("{}: {}", path, no_vm)};
  return config;
}

}  // namespace host::broker
