// Users and groups as the configuration names them: by name, or by number where they have none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace host::broker {

// The users that may open the broker's files and sockets.
struct FileAccess {
  unsigned mode = 0600;
  std::string owner, group;  // "": the broker's own
};

// Nothing if there is none of that name.
std::optional<uid_t> user_of(const std::string& name);
std::optional<gid_t> group_of(const std::string& name);

// A user's number, and the name if the system lists one: "65534 (nobody)".
std::string user_in_words(uid_t user);

// True if this process may give a file of its own to that user and group. Otherwise `why` is the reason, worded from
// the end of the key on: `owner = "NAME": there is no such user`.
bool may_give(const FileAccess& access, std::string& why);

}  // namespace host::broker
