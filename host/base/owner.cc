#include "host/base/owner.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace host::broker {
namespace {

std::optional<unsigned> number_in(const std::string& text) {
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number == -1U) return std::nullopt;
  return number;
}

}  // namespace

std::optional<uid_t> user_of(const std::string& name) {
  if (const passwd* found = getpwnam(name.c_str()); found != nullptr) return found->pw_uid;
  return number_in(name);
}

std::optional<gid_t> group_of(const std::string& name) {
  if (const group* found = getgrnam(name.c_str()); found != nullptr) return found->gr_gid;
  return number_in(name);
}

std::string user_in_words(uid_t user) {
  const passwd* const found = getpwuid(user);
  return found != nullptr ? fmt::format("{} ({})", user, found->pw_name) : std::to_string(user);
}

namespace {

bool is_member_of(gid_t group) {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, getgroups(0, nullptr))));
  groups.resize(static_cast<std::size_t>(std::max(0, getgroups(static_cast<int>(groups.size()), groups.data()))));
  groups.push_back(getegid());
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

Result<void> may_give(const FileAccess& access) {
  const auto failure = [](const char* key, const std::string& value, const char* reason) {
    return Error{fmt::format("{} = \"{}\": {}", key, value, reason)};
  };
  const auto user = access.owner.empty() ? geteuid() : user_of(access.owner);
  if (!user) return failure("owner", access.owner, "there is no such user");
  const auto group = access.group.empty() ? getegid() : group_of(access.group);
  if (!group) return failure("group", access.group, "there is no such group");
  if (geteuid() == 0) return {};
  if (!is_member_of(*group)) return failure("group", access.group, "only root may give to a group of others");
  if (*user != geteuid()) return failure("owner", access.owner, "only root may give a socket to another user");
  return {};
}

}  // namespace host::broker
