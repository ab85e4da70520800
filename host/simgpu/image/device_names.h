// Names and common properties of the simulated devices, for the driver and for code that does not load the driver.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace simgpu {

inline constexpr int max_devices = 8;  // limit for IVGPU_SIM_DEVICES
inline constexpr const char* device_name = "ivgpu simulated GPU";
inline constexpr int driver_version = 13000;  // the version that cuDriverGetVersion reports
inline constexpr unsigned device_sm = 120;    // compute capability times ten

// The UUID consists of "ivgpu-sim", zeros, and the index plus 1.
inline std::array<unsigned char, 16> device_uuid_bytes(int index) {
  return {'i', 'v', 'g', 'p', 'u', '-', 's', 'i', 'm', 0, 0, 0, 0, 0, 0, static_cast<unsigned char>(index + 1)};
}

// Example: "GPU-69766770-752d-7369-6d00-000000000001".
inline std::string device_uuid_text(int index) {
  const auto bytes = device_uuid_bytes(index);
  std::string out = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += two;
  }
  return out;
}

constexpr int pci_bus_of(int index) { return index + 1; }

}  // namespace simgpu
