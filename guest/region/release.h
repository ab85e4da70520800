// Makes the release of the broker or of the kernel module printable, since without the module any program of the VM can
// overwrite the broker's release. For the library and for ivgpu-check.
#pragma once

#include <cstring>

#include "ring/layout/layout.h"

namespace guest {

inline void copy_release(const char (&from)[sizeof ring::RegionHeader::release],
                         char (&to)[sizeof ring::RegionHeader::release]) {
  std::memcpy(to, from, sizeof to);
  to[sizeof to - 1] = '\0';
  if (to[0] == '\0') std::strcpy(to, "unknown");
  for (char* c = to; *c != '\0'; ++c)
    if (*c < '!' || *c > '~') *c = '?';
}

}  // namespace guest
