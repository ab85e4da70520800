// Users and groups as the configuration names them: by name, or by number where they have none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace host::broker {

// Who may open what the broker makes.
struct FileAccess {
  unsigned mode = 0600;
  std::string owner, group;  // "": the broker's own
};

// Nothing where there is none of that name.
std::optional<uid_t> user_of(const std::string& name);
std::optional<gid_t> group_of(const std::string& name);

}  // namespace host::broker
