#include "host/broker/config/worker_users.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace host::broker {
namespace {

constexpr std::int64_t last_id = 4294967294;  // the kernel reads -1 as "none"
constexpr std::int64_t nobody = 65534;        // other programs may run as this user, too

std::optional<std::int64_t> to_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed != std::errc() || end != text.data() + text.size() || id < 1 || id > last_id) return std::nullopt;
  return id;
}

}  // namespace

std::optional<UserRange> to_user_range(std::string_view text) {
  const std::size_t between = text.find('-');
  if (between == std::string_view::npos) return std::nullopt;
  const auto first = to_id(text.substr(0, between)), last = to_id(text.substr(between + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return UserRange{*first, *last};
}

Result<void> may_give_users(const BrokerOptions& broker) {
  if (broker.worker_uids.empty() || geteuid() == 0) return {};
  return Error{
      "[broker] worker_uids: only root can give workers users of their own; start ivgpud as root or leave worker_uids "
      "out"};
}

Result<void> give_users(const std::string& text, const std::vector<UserWish>& wishes) {
  if (text.empty()) return {};
  const UserRange range = *to_user_range(text);
  // An ID both named in the file and given from the range would be shared without notice.
  const auto is_free = [&](const UserWish& wish, const char* key, bool given, std::int64_t id) -> Result<void> {
    if (!given || !range.has(id)) return {};
    return Error{
        fmt::format("[vm.{}] {} = {} is one of [broker] worker_uids = \"{}\", which ivgpud gives to VMs by itself",
                    wish.vm->name, key, id, text)};
  };
  std::int64_t next = range.first;
  for (const UserWish& wish : wishes) {
    if (const auto uid = is_free(wish, "worker_uid", wish.uid_given, wish.vm->worker_uid); !uid) return uid.error();
    if (const auto gid = is_free(wish, "worker_gid", wish.gid_given, wish.vm->worker_gid); !gid) return gid.error();
    if (wish.uid_given) continue;
    wish.vm->worker_uid = next;
    if (!wish.gid_given) wish.vm->worker_gid = next;
    ++next;
  }
  if (next - 1 <= range.last) return {};
  return Error{fmt::format("[broker] worker_uids = \"{}\" has {} user(s), and {} VMs are to have one each", text,
                           range.last - range.first + 1, next - range.first)};
}

namespace {

// Sets the group as well if it is from the range.
void set_user(VmOptions& vm, const UserRange& range, std::int64_t uid) {
  if (range.has(vm.worker_gid)) vm.worker_gid = uid;
  vm.worker_uid = uid;
}

std::optional<std::int64_t> free_user(const UserRange& range, const std::set<std::int64_t>& taken) {
  for (std::int64_t uid = range.first; uid <= range.last; ++uid)
    if (!taken.contains(uid)) return uid;
  return std::nullopt;
}

}  // namespace

Result<void> keep_users(const std::string& text, const std::vector<VmOptions>& running,
                        std::vector<VmOptions>& wanted) {
  if (text.empty()) return {};
  const UserRange range = *to_user_range(text);
  std::map<std::string, std::int64_t> has;
  std::set<std::int64_t> taken;
  for (const VmOptions& vm : running) {
    has[vm.name] = vm.worker_uid;
    taken.insert(vm.worker_uid);
  }
  for (VmOptions& vm : wanted) {
    if (!range.has(vm.worker_uid)) continue;
    const auto old = has.find(vm.name);
    if (old != has.end() && range.has(old->second)) {
      set_user(vm, range, old->second);
      continue;
    }
    const auto uid = free_user(range, taken);
    if (!uid) return Error{fmt::format("[broker] worker_uids = \"{}\" has no user left for VM {}", text, vm.name)};
    set_user(vm, range, *uid);
    taken.insert(*uid);
  }
  return {};
}

void note_own_users(std::vector<VmOptions>& vms) {
  for (VmOptions& vm : vms)
    vm.own_uid = vm.worker_uid != nobody && std::count_if(vms.begin(), vms.end(), [&](const VmOptions& other) {
                                              return other.worker_uid == vm.worker_uid;
                                            }) == 1;
}

}  // namespace host::broker
