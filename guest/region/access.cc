#include "guest/region/access.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cstdio>

namespace guest {
namespace {

std::string name_of_user(uid_t id) {
  passwd entry{}, *found = nullptr;
  char texts[1024];
  return getpwuid_r(id, &entry, texts, sizeof texts, &found) == 0 && found != nullptr ? entry.pw_name
                                                                                      : std::to_string(id);
}

std::string name_of_group(gid_t id) {
  group entry{}, *found = nullptr;
  char texts[4096];
  return getgrgid_r(id, &entry, texts, sizeof texts, &found) == 0 && found != nullptr ? entry.gr_name
                                                                                      : std::to_string(id);
}

}  // namespace

std::string access_in_words(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) return "";
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777u);
  return std::string(" (mode ") + mode + ", user " + name_of_user(status.st_uid) + ", group " +
         name_of_group(status.st_gid) + ")";
}

}  // namespace guest
