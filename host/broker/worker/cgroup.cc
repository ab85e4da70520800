#include "host/broker/worker/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace host::broker {
namespace {

constexpr const char* controllers[] = {"memory", "pids", "cpu"};
constexpr std::int64_t period_us = 100'000;  // in which a share of the processors is counted; the kernel's own

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "" on success, else the reason.
std::string write_to(const std::string& path, const std::string& text) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return fmt::format("{}: {}", path, std::strerror(errno));
}

bool make_folder(const std::string& path) {
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;  // EEXIST: left by a killed broker
}

std::vector<std::string> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string w; words >> w;)
    if (w == word) return true;
  return false;
}

// mountinfo escapes blanks as octal numbers.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const auto [end, failed] =
        std::from_chars(&text[i] + 1, std::min(&text[i] + 4, text.data() + text.size()), code, 8);
    const bool escaped = text[i] == '\\' && failed == std::errc() && end == &text[i] + 4;
    plain += escaped ? static_cast<char>(code) : text[i];
    if (escaped) i += 3;
  }
  return plain;
}

// The group's path under a mount whose root is `root`; "" if the group is outside.
std::string below(const std::string& mount, const std::string& root, const std::string& group) {
  if (root == "/") return group == "/" ? mount : mount + group;
  if (group == root) return mount;
  return group.starts_with(root + "/") ? mount + group.substr(root.size()) : "";
}

// "" if the group's children can have limits.
std::string missing_controller(const std::string& path) {
  const std::string there = text_of(path + "/cgroup.controllers");
  for (const char* controller : controllers)
    if (!has_word(there, controller))
      return fmt::format("{} lacks the controller {} (systemd.unified_cgroup_hierarchy=1, Delegate=yes)", path,
                         controller);
  return {};
}

constexpr const char* no_groups =
    "this machine shows no control groups of version 2 (systemd.unified_cgroup_hierarchy=1)";

}  // namespace

std::string own_group(std::string_view cgroup, std::string_view mountinfo) {
  std::string group;
  for (const std::string& line : words_of(cgroup, '\n'))
    if (line.starts_with("0::/")) group = line.substr(3);
  if (group.empty()) return {};
  // Fields: number, parent, device, root, mount point, options, ..., "-", type, source, options.
  for (const std::string& line : words_of(mountinfo, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 5 || line.find(" - cgroup2 ") == std::string::npos) continue;
    if (const std::string path = below(unescaped(words[4]), unescaped(words[3]), group); !path.empty()) return path;
  }
  return {};
}

// Tests the whole hierarchy if it is mounted, else the part that a container sees.
std::string groups_missing_here() {
  const std::string mounts = text_of("/proc/self/mountinfo");
  const std::string root = own_group("0::/", mounts);
  const std::string path = root.empty() ? own_group(text_of("/proc/self/cgroup"), mounts) : root;
  return path.empty() ? no_groups : missing_controller(path);
}

std::uint64_t number_of(std::string_view text, std::string_view key) {
  for (const std::string& line : words_of(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    std::uint64_t number = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), number);
    return number;
  }
  return 0;
}

// ---- the control group of a VM -------------------------------------------------------------------------------------

// The VM's workers have ended. cgroup.kill ends processes that a killed broker left.
Group::~Group() {
  entrance_.reset();
  write_to(path_ + "/cgroup.kill", "1");
  for (int tries = 0; rmdir(path_.c_str()) != 0 && errno == EBUSY && tries < 50; ++tries) usleep(1000);
}

std::string Group::bound(const GroupLimits& limits) const {
  const auto number = [](std::int64_t n) { return n != 0 ? std::to_string(n) : "max"; };
  const std::string cpu =
      limits.cpu_thousandths != 0 ? std::to_string(limits.cpu_thousandths * period_us / 1000) : "max";
  for (const auto& [file, text] :
       {std::pair("memory.max", number(limits.memory_bytes)), std::pair("pids.max", number(limits.pids)),
        std::pair("cpu.max", fmt::format("{} {}", cpu, period_us))})
    if (std::string why = write_to(fmt::format("{}/{}", path_, file), text); !why.empty()) return why;
  // Memory over the limit must not go to swap. A kernel without swap lacks this file.
  write_to(path_ + "/memory.swap.max", limits.memory_bytes != 0 ? "0" : "max");
  return {};
}

GroupUse Group::use() const {
  const auto first = [](const std::string& text) { return number_of("is " + text, "is"); };
  return {.memory_bytes = first(text_of(path_ + "/memory.current")),
          .oom_kills = number_of(text_of(path_ + "/memory.events"), "oom_kill"),
          .pids = first(text_of(path_ + "/pids.current")),
          .throttled_us = number_of(text_of(path_ + "/cpu.stat"), "throttled_usec")};
}

// ---- the broker's own group ----------------------------------------------------------------------------------------

Groups::Groups() {
  missing_ = prepare();
  if (!missing_.empty()) undo();
}

Groups::~Groups() { undo(); }

std::string Groups::prepare() {
  path_ = own_group(text_of("/proc/self/cgroup"), text_of("/proc/self/mountinfo"));
  if (path_.empty()) return no_groups;
  if (const std::string missing = missing_controller(path_); !missing.empty()) return missing;
  // Only the root of the hierarchy may have both processes and children with limits.
  const bool root = access((path_ + "/cgroup.type").c_str(), F_OK) != 0;
  if (!root)
    if (const std::string why = enter_leaf(); !why.empty()) return why;
  for (const char* controller : controllers)
    if (const std::string why = write_to(path_ + "/cgroup.subtree_control", std::string("+") + controller);
        !why.empty())
      return why + " (Delegate=yes)";
  return {};
}

std::string Groups::enter_leaf() {
  const std::string own = std::to_string(getpid());
  if (text_of(path_ + "/cgroup.procs") != own + "\n")
    return fmt::format("{} has other processes, too (a unit or scope of its own with Delegate=yes)", path_);
  const std::string leaf = path_ + "/ivgpud";
  if (!make_folder(leaf))
    return fmt::format("no group can be made in {}: {} (Delegate=yes)", path_, std::strerror(errno));
  leaf_ = leaf;
  return write_to(leaf + "/cgroup.procs", own);
}

void Groups::undo() {
  if (leaf_.empty()) return;
  for (const char* controller : controllers) write_to(path_ + "/cgroup.subtree_control", std::string("-") + controller);
  write_to(path_ + "/cgroup.procs", std::to_string(getpid()));
  rmdir(leaf_.c_str());
  leaf_.clear();
}

Result<std::unique_ptr<Group>> Groups::make(const std::string& vm, const GroupLimits& limits) const {
  std::unique_ptr<Group> group(new Group(path_ + "/ivgpu-" + vm));
  const std::string& path = group->path_;
  const auto failure = [&](const std::string& why) {
    return Error{fmt::format("VM {} gets no control group: {}", vm, why)};
  };
  if (!make_folder(path)) return failure(fmt::format("{}: {}", path, std::strerror(errno)));
  if (const std::string why = group->bound(limits); !why.empty()) return failure(why);
  group->entrance_.reset(open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!group->entrance_) return failure(fmt::format("{}/cgroup.procs: {}", path, std::strerror(errno)));
  return group;
}

}  // namespace host::broker
