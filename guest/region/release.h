// The broker's release, made printable, since any program of the VM can write over it. For the library and for
// ivgpu-check.
#pragma once

#include <cstring>

#include "ring/layout.h"

namespace guest {

inline void copy_release(const ring::RegionHeader& header, char (&to)[sizeof ring::RegionHeader::release]) {
  std::memcpy(to, header.release, sizeof to);
  to[sizeof to - 1] = '\0';
  if (to[0] == '\0') std::strcpy(to, "unknown");
  for (char* c = to; *c != '\0'; ++c)
    if (*c < '!' || *c > '~') *c = '?';
}

}  // namespace guest
