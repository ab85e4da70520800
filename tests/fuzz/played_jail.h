// A fake jail, which replaces host/jail/ at link time (tests/fuzz/played_jail.cc). It drops no privilege, so one
// process can start many workers. `missing` decides which layers fail.
#pragma once

#include "host/jail/layer.h"

namespace fuzz {

// The state of the starting worker's jail. `missing` returns the reason why a layer fails, or an empty string. The jail
// calls it once per layer, in the order of the layers.
struct PlayedJail {
  std::string (*missing)(host::jail::Layer) = nullptr;
  std::uint32_t asked = 0, holding = 0;  // a bit per Layer
  bool in_order = true;                  // each layer once, and seccomp last
  bool closed() const { return (asked & static_cast<std::uint32_t>(host::jail::Layer::Seccomp)) != 0; }
};
extern PlayedJail played_jail;

}  // namespace fuzz
