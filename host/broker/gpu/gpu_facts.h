// What NVIDIA's management library tells of a GPU for the guests' own such library (docs/design/044-nvml.md), and the lines in
// which ivgpu-nvml says it to the broker.
//
// Trust: the lines are a helper's words. What is no line of these forms changes nothing; a text is made fit for a page.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ring/nvml/facts.h"

namespace host::broker {

struct GpuFacts {
  std::string name, bus_id, vbios, driver;  // the last is the driver's release; "": nobody tells
  std::uint32_t cuda = 0;                   // as cuDriverGetVersion; 0: nobody tells
  std::uint64_t total = 0, reserved = 0;    // bytes of the GPU's memory; a total of 0: nobody tells
  std::array<std::optional<std::uint32_t>, ring::facts> fact;

  std::optional<std::uint32_t>& operator[](ring::Fact which) { return fact[ring::number_of(which)]; }
  const std::optional<std::uint32_t>& operator[](ring::Fact which) const { return fact[ring::number_of(which)]; }
};

// The lines, each with a kind before and a GPU's name as its second word, are
//   "text GPU name|bus_id|vbios|driver TEXT", "cuda GPU NUMBER", "memory GPU TOTAL RESERVED", "fact GPU FACT NUMBER".
// `rest`: what stands behind the GPU. False: it is none of these.
bool take_fact_line(std::string_view kind, std::string_view rest, GpuFacts& facts);
std::string fact_lines(const std::string& gpu, const GpuFacts& facts);

}  // namespace host::broker
