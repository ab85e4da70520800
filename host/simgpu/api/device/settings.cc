// An invalid value is rejected with a line on stderr and never replaced by a default.
#include "host/simgpu/api/device/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "host/simgpu/api/device/usage_file.h"
#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/image/device_names.h"
#include "ring/abi/launch_blocking.h"
#include "ring/abi/visible_devices.h"

namespace simgpu {
namespace {

constexpr std::size_t least_memory = std::size_t{1} << 20, most_memory = std::size_t{1} << 40;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::size_t> size(std::string_view text) {
  unsigned shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  const auto value = number(text);
  if (!value || *value > most_memory >> shift || *value << shift < least_memory) return std::nullopt;
  return *value << shift;
}

// Returns false if the variable is set to a value that is not a size.
bool read_size(const char* variable, const char* text, std::size_t& into) {
  if (text == nullptr) return true;
  const auto bytes = size(text);
  if (bytes)
    into = *bytes;
  else
    report(std::string(variable) + " is \"" + text + "\"; allowed are 1M to 1024G, in bytes or with K, M or G.");
  return bytes.has_value();
}

// Returns false if the variable is set to a value that is not an address.
bool read_address(const char* variable, const char* text, std::uint64_t& into) {
  if (text == nullptr) return true;
  const std::string_view digits = text;
  constexpr std::uint64_t least = std::uint64_t{1} << 40, most = std::uint64_t{1} << 47, step = std::uint64_t{2} << 20;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into, 16);
  const bool good =
      error == std::errc() && end == digits.data() + digits.size() && into >= least && into <= most && into % step == 0;
  if (!good)
    report(std::string(variable).append(" is \"").append(digits).append(
        "\"; allowed are hexadecimal multiples of 200000 from 10000000000 to 800000000000."));
  return good;
}

UsageFile* usage_of_environment() {
  const char* path = std::getenv("IVGPU_SIM_USAGE");
  return path != nullptr ? map_usage_file(path) : nullptr;
}

// Selects the devices that are not lost from the first `count` devices, in the order of CUDA_VISIBLE_DEVICES.
CUresult choose_devices(std::uint32_t count, Settings& out) {
  std::vector<std::uint32_t> there;
  std::vector<cuabi::Uuid> uuids;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (out.usage != nullptr && out.usage->time[i].lost.load(std::memory_order_relaxed) != 0) continue;
    there.push_back(i);
    uuids.push_back(device_uuid_bytes(static_cast<int>(i)));
  }
  const CUresult result = cuabi::visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids, out.visible);
  for (std::uint32_t& index : out.visible) index = there[index];
  return result;
}

}  // namespace

CUuuid device_uuid(int index) {
  CUuuid uuid{};
  const auto bytes = device_uuid_bytes(index);
  std::memcpy(uuid.bytes, bytes.data(), bytes.size());
  return uuid;
}

CUresult read_settings(Settings& out) {
  if (!read_size("IVGPU_SIM_MEMORY", std::getenv("IVGPU_SIM_MEMORY"), out.memory) ||
      !read_size("IVGPU_SIM_CONTEXT_MEMORY", std::getenv("IVGPU_SIM_CONTEXT_MEMORY"), out.context_memory) ||
      !read_address("IVGPU_SIM_CHUNKS_BELOW", std::getenv("IVGPU_SIM_CHUNKS_BELOW"), out.chunks_below))
    return CUDA_ERROR_NO_DEVICE;
  // mapped once: later, the file descriptor's number may refer to another file
  static UsageFile* const usage = usage_of_environment();
  out.usage = usage;
  out.launch_blocking = cuabi::launches_block(std::getenv(cuabi::launch_blocking_variable));
  if (const char* text = std::getenv("IVGPU_SIM_HMM")) {
    const std::string_view hmm = text;
    if (hmm != "0" && hmm != "1") {
      report("IVGPU_SIM_HMM is \"" + std::string(hmm) + "\"; allowed are 0 and 1.");
      return CUDA_ERROR_NO_DEVICE;
    }
    out.pageable = hmm == "1";
  }
  int count = 1;
  if (const char* text = std::getenv("IVGPU_SIM_DEVICES")) {
    const auto value = number(text);
    if (!value || *value < 1 || *value > max_devices) {
      report("IVGPU_SIM_DEVICES is \"" + std::string(text) + "\"; allowed are 1 to 8.");
      return CUDA_ERROR_NO_DEVICE;
    }
    count = static_cast<int>(*value);
  }
  // The devices are already in the order of their PCI addresses, so CUDA_DEVICE_ORDER is only checked.
  if (cuabi::device_order(std::getenv("CUDA_DEVICE_ORDER")) == cuabi::DeviceOrder::Invalid)
    return CUDA_ERROR_INVALID_DEVICE;
  return choose_devices(static_cast<std::uint32_t>(count), out);
}

}  // namespace simgpu
