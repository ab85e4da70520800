// Facts about a GPU from NVIDIA's management library, for the guests' libnvidia-ml.so.1 (docs/design/044-nvml.md), and
// their text form between ivgpu-nvml and the broker.
//
// Trust: the lines come from a helper. A malformed line changes nothing; texts are cut and escaped for the GPU's page.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ring/nvml/facts.h"

namespace host::broker {

struct GpuFacts {
  std::string name, bus_id, vbios, driver;  // `driver` is the driver's release; "": unknown
  std::uint32_t cuda = 0;                   // as cuDriverGetVersion returns; 0: unknown
  std::uint64_t total = 0, reserved = 0;    // bytes of the GPU's memory; a total of 0: unknown
  std::array<std::optional<std::uint32_t>, ring::facts> fact;

  std::optional<std::uint32_t>& operator[](ring::Fact which) { return fact[ring::number_of(which)]; }
  const std::optional<std::uint32_t>& operator[](ring::Fact which) const { return fact[ring::number_of(which)]; }
};

// Each line starts with its kind and the GPU's name:
//   "text GPU name|bus_id|vbios|driver TEXT", "cuda GPU NUMBER", "memory GPU TOTAL RESERVED", "fact GPU FACT NUMBER".
// `rest` is the text after the GPU's name. False if the line has none of these forms.
[[nodiscard]] bool take_fact_line(std::string_view kind, std::string_view rest, GpuFacts& facts);
std::string fact_lines(const std::string& gpu, const GpuFacts& facts);

}  // namespace host::broker
