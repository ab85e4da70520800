// The jail's layers: their names, and the result of applying one.
//
// A worker is treated as if its guest controlled it. The order is fixed and follows the driver's measured needs.
// Namespaces, limits, no_new_privs, Landlock and user are applied while the process has one thread and no driver.
// seccomp is applied last, to all threads, before the worker reads the first guest byte. Each layer is effective by
// itself; a missing layer is reported and never replaced.
#pragma once

#include <cstdint>
#include <string>

namespace host::jail {

// Bits of the mask in a worker's ready message.
enum class Layer : std::uint32_t {
  NoNewPrivileges = 1 << 0,
  Namespaces = 1 << 1,
  Limits = 1 << 2,
  User = 1 << 3,
  Landlock = 1 << 4,
  Seccomp = 1 << 5,
};
inline constexpr std::uint32_t all_layers = (1 << 6) - 1;

constexpr const char* name_of(Layer layer) {
  switch (layer) {
    case Layer::NoNewPrivileges: return "no_new_privs";
    case Layer::Namespaces: return "namespaces";
    case Layer::Limits: return "rlimits";
    case Layer::User: return "user";
    case Layer::Landlock: return "landlock";
    case Layer::Seccomp: return "seccomp";
  }
  return "?";
}

// The result of applying a layer. The layer is active if `missing` is empty; otherwise `missing` gives in a few words
// the reason why the layer is not, or not fully, effective.
struct Result {
  Layer layer;
  std::string missing;
  bool active() const { return missing.empty(); }
};

}  // namespace host::jail
