// The runtime's integrity check (export table INTEGRITY_CHECK): HMAC-MD2 (RFC 2104 over RFC 1319) of facts that both
// the runtime and the driver know. A wrong digest makes every later call of the runtime fail with error 103. All
// functions are pure.
//
// ```cpp
// cuabi::Digest digest_of(const cuabi::IntegrityFacts& facts, std::span<const cuabi::DeviceIdentity> devices) {
//   return cuabi::integrity_digest(facts, devices);  // devices in the order of their ordinals
// }
// ```
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ring/abi/backend.h"

namespace cuabi {

using Digest = std::array<std::uint8_t, 16>;

Digest md2(std::span<const std::uint8_t> message);
Digest hmac_md2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message);

// The hashed data, except the devices, in the order in which they are hashed.
struct IntegrityFacts {
  std::uint32_t driver_version;
  std::uint32_t version;                                            // the runtime's version plus 0, 1 or 2
  std::uint32_t process;                                            // the result of getpid()
  std::uint32_t thread;                                             // the low half of pthread_self()
  std::uint64_t cudart_table, integrity_table, integrity_function;  // addresses as returned to the runtime
  std::uint64_t unix_seconds;
};

// Returns the digest for `facts.version`: a constant for versions that end in 0 or 1, and the HMAC for all other
// versions.
Digest integrity_digest(const IntegrityFacts& facts, std::span<const DeviceIdentity> devices);

}  // namespace cuabi
