// The jail's layers: their names, and the report of applying one.
//
// A worker is treated as if its guest controlled it. The order is fixed (the driver's demands were measured):
// namespaces, limits, no_new_privs, Landlock and user while the process has one thread and no driver; seccomp last,
// over all threads, before the first guest byte. Each layer holds by itself: a missing one is reported, never papered
// over.
#pragma once

#include <cstdint>
#include <string>

namespace host::jail {

// Bits of the mask that a worker reports with its readiness.
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

// Active if `missing` is empty; otherwise `missing` is the reason, in a few words, why the layer does not (wholly)
// hold.
struct Result {
  Layer layer;
  std::string missing;
  bool active() const { return missing.empty(); }
};

}  // namespace host::jail
