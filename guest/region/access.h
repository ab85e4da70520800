// Why this process may not use a file, in words: for the log, once it has failed.
#pragma once

#include <string>

namespace guest {

// " (mode 0600, user root, group root)"; "" where even that cannot be asked. Asks the system's user database for names.
std::string access_in_words(const char* path);

}  // namespace guest
