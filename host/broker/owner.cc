#include "host/broker/owner.h"

#include <grp.h>
#include <pwd.h>

#include <charconv>

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

}  // namespace host::broker
