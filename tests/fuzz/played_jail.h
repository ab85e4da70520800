// The jail's layers as a fuzzer plays them (tests/fuzz/played_jail.cc stands before host/jail/): nothing is given up,
// so one process can start many workers. Which layers hold the input says, through `missing`.
#pragma once

#include "host/jail/layer.h"

namespace fuzz {

// Of the worker that starts. `missing` says of a layer why it does not hold, empty where it does; asked once each, in
// the order in which they close.
struct PlayedJail {
  std::string (*missing)(host::jail::Layer) = nullptr;
  std::uint32_t asked = 0, holding = 0;  // bits of Layer
  bool in_order = true;                  // each once, and seccomp last
  bool closed() const { return (asked & static_cast<std::uint32_t>(host::jail::Layer::Seccomp)) != 0; }
};
extern PlayedJail played_jail;

}  // namespace fuzz
