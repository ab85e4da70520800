// A fake jail, linked in place of host/jail/ (tests/fuzz/played_jail.cc). It drops no privilege, so one process can
// start many workers. `missing` decides which layers fail.
#pragma once

#include "host/jail/layer.h"

namespace fuzz {

// State of the starting worker's jail. `missing` returns why a layer fails, or an empty string. It is called once per
// layer, in closing order.
struct PlayedJail {
  std::string (*missing)(host::jail::Layer) = nullptr;
  std::uint32_t asked = 0, holding = 0;  // bits of Layer
  bool in_order = true;                  // each once, and seccomp last
  bool closed() const { return (asked & static_cast<std::uint32_t>(host::jail::Layer::Seccomp)) != 0; }
};
extern PlayedJail played_jail;

}  // namespace fuzz
