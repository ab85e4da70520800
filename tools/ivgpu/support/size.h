// Converts between two notations of sizes: 1G for QEMU, 1GiB for ivgpud. Users may write either notation. A number
// without a unit is in MiB, as with QEMU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ivgpu {

// Turns "1G", "1GiB" and "1024" into "1GiB", "1GiB" and "1024MiB". Other text stays unchanged, and ivgpud reports the
// mistake.
std::string size_for_config(const std::string& text);

// Turns the same texts into "1G", "1G" and "1024M" for QEMU.
std::string size_for_qemu(const std::string& text);

// nullopt if the text is no size or exceeds 64 bits.
std::optional<std::uint64_t> size_in_bytes(const std::string& text);

}  // namespace ivgpu
