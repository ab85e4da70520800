// One size in two notations: QEMU's 1G is 1GiB in ivgpud's configuration. People may write either everywhere, and a
// number alone is MiB, as with QEMU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ivgpu {

// "1G", "1GiB" and "1024" become "1GiB", "1GiB" and "1024MiB". A text that is no such size stays as it is, so that
// ivgpud reports its mistake.
std::string size_for_config(const std::string& text);

// The same for QEMU: "1G", "1G" and "1024M".
std::string size_for_qemu(const std::string& text);

// Nothing where the text is no such size, or too large a one.
std::optional<std::uint64_t> size_in_bytes(const std::string& text);

}  // namespace ivgpu
