// The getters that return several facts at once: structs with a version, and lists of fields.
#include <chrono>

#include "guest/nvml/library.h"

namespace guest::nvml {
namespace {

// A field NVML_FI_DEV_* and its fact. Average and instant power are one fact.
struct Field {
  unsigned id;
  ring::Fact fact;
};
constexpr Field fields[] = {
    {1, ring::Fact::ecc_mode},
    {2, ring::Fact::ecc_mode_pending},
    {82, ring::Fact::memory_temperature},
    {185, ring::Fact::power_usage},
    {186, ring::Fact::power_usage},
    {187, ring::Fact::least_power_limit},
    {188, ring::Fact::greatest_power_limit},
    {189, ring::Fact::default_power_limit},
    {190, ring::Fact::enforced_power_limit},
    {192, ring::Fact::power_limit},
};

std::optional<std::uint32_t> field_of(const Gpu& gpu, unsigned id) {
  for (const Field& field : fields)
    if (field.id == id) return gpu.knows(field.fact);
  return std::nullopt;
}

long long microseconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

constexpr unsigned p2p_capabilities = 5, p2p_unknown = 6;  // NVML_P2P_CAPS_INDEX_UNKNOWN, NVML_P2P_STATUS_UNKNOWN

}  // namespace

// The host does not report the memory's utilization. Programs read 0 as unknown.
NVML_CALL nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* to) {
  return library().of_gpu(device, About::State, to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    const auto percent = gpu.knows(ring::Fact::utilization);
    if (!percent) return NVML_ERROR_NOT_SUPPORTED;
    *to = {*percent, 0};
    return NVML_SUCCESS;
  });
}

NVML_CALL nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* to) {
  return library().of_gpu(device, About::State, to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (to->version != nvml_version<nvmlTemperature_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (to->sensorType != 0) return NVML_ERROR_INVALID_ARGUMENT;
    const auto degrees = gpu.knows(ring::Fact::temperature);
    if (!degrees) return NVML_ERROR_NOT_SUPPORTED;
    to->temperature = static_cast<int>(*degrees);
    return NVML_SUCCESS;
  });
}

// Each value has its own result.
NVML_CALL nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  return library().of_gpu(device, About::State, count >= 0 && values != nullptr, [&](const Gpu& gpu) {
    const long long now = microseconds_since_1970();
    for (nvmlFieldValue_t* value = values; value != values + count; ++value) {
      const auto number = field_of(gpu, value->fieldId);
      value->timestamp = now, value->latencyUsec = 0;
      value->valueType = nvml_value_unsigned;
      value->nvmlReturn = number ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
      value->value.ullVal = number.value_or(0);
    }
    return NVML_SUCCESS;
  });
}

// The guest does not know how the host's GPUs are connected.
NVML_CALL nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, unsigned capability, unsigned* to) {
  const bool sound = to != nullptr && capability < p2p_capabilities;
  return library().of_gpu(device, About::State, sound, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!index_of(other, gpu.all.snapshot())) return NVML_ERROR_INVALID_ARGUMENT;
    *to = p2p_unknown;
    return NVML_SUCCESS;
  });
}

}  // namespace guest::nvml
