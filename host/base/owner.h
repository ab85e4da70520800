// Users and groups as the configuration names them: by name, or by number if no entry has that name.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "host/base/result.h"

namespace host::broker {

// Mode, owner and group of the broker's files and sockets.
struct FileAccess {
  unsigned mode = 0600;
  std::string owner, group;  // "": the broker's own user or group
};

// Nothing if no user or group has that name.
[[nodiscard]] std::optional<uid_t> user_of(const std::string& name);
[[nodiscard]] std::optional<gid_t> group_of(const std::string& name);

// Returns the user's number, and the name if the system lists one: "65534 (nobody)".
std::string user_in_words(uid_t user);

// An error unless this process may give its own file to that user and group. Its message starts with the key's last
// part: `owner = "NAME": there is no such user`.
Result<void> may_give(const FileAccess& access);

}  // namespace host::broker
