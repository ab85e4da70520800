// Describes why this process may not use a file. For the log, after open() has failed.
#pragma once

#include <string>

namespace guest {

// Returns " (mode 0600, user root, group root)", or "" if stat() fails. Looks the names up in the system's user
// database.
std::string access_in_words(const char* path);

}  // namespace guest
