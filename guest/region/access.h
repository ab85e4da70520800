// Describes in words why this process may not use a file. For the log, after the use has failed.
#pragma once

#include <string>

namespace guest {

// Gives " (mode 0600, user root, group root)", or "" if the file's status cannot be read. Looks the names up in the
// system's user database.
std::string access_in_words(const char* path);

}  // namespace guest
