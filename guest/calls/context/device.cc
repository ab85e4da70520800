// Queries about devices. The guest answers them from the device page.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "guest/base/switches.h"
#include "guest/calls/calls.h"
#include "guest/calls/context/device_attributes.h"
#include "guest/calls/refusal.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/abi/device_properties.h"
#include "ring/abi/error_text.h"
#include "ring/abi/export_tables.h"
#include "ring/abi/old_sizes.h"

namespace guest::calls {
namespace {

const ring::DeviceInfo& info(CUdevice device) { return device_info(static_cast<std::uint32_t>(device)); }

// Copies a text of the device page. The worker may have omitted the terminating NUL.
template <std::size_t size>
CUresult copy_text(char* to, int room, const char (&from)[size]) {
  if (to == nullptr || room <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t n = std::min(static_cast<std::size_t>(room) - 1, strnlen(from, size));
  std::memcpy(to, from, n);
  to[n] = '\0';
  return CUDA_SUCCESS;
}

// The parts of domain:bus:device.function; domain and function are optional.
using BusPlace = std::array<unsigned, 4>;
std::optional<BusPlace> parse_bus_id(const char* text) {
  BusPlace p{};
  if (std::sscanf(text, "%x:%x:%x.%x", &p[0], &p[1], &p[2], &p[3]) >= 3) return p;
  p = {};
  if (std::sscanf(text, "%x:%x.%x", &p[1], &p[2], &p[3]) >= 2) return p;
  return std::nullopt;
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_device(ordinal); r != CUDA_SUCCESS) return r;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(device_count());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  return copy_text(name, length, info(device).name);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, info(device).uuid, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, info(device).uuid_v2, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = info(device).total_memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
  std::size_t all = 0;
  const CUresult result = calls::cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &all, device);
  if (result == CUDA_SUCCESS) *bytes = cuabi::size_in_32_bits(all);
  return result;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  const auto index = static_cast<unsigned>(attribute);
  if (value == nullptr || index >= ring::max_attributes) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = session()->memory.addresses.arena_is_at_one_address();  // otherwise cuMemAllocManaged refuses
  if (attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY && !managed) {
    *value = 0;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS && (!managed || managed_is_exclusive())) {
    *value = 0;
    return CUDA_SUCCESS;
  }
  for (const AttributeRule& rule : attribute_rules)
    if (rule.attribute == attribute) {
      *value = rule.value;
      return CUDA_SUCCESS;
    }
  const auto result = static_cast<CUresult>(info(device).attribute_result[index]);
  if (result == CUDA_SUCCESS) *value = info(device).attribute[index];
  return result;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = info(device).attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  *minor = info(device).attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (const CUresult r = check_device(peer); r != CUDA_SUCCESS) return r;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = 0;
  return CUDA_SUCCESS;
}

// No device of a session can access another device's memory, and no device is its own peer.
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (value == nullptr || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
      attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
    return CUDA_ERROR_INVALID_VALUE;
  if (check_device(from) != CUDA_SUCCESS || check_device(to) != CUDA_SUCCESS || from == to)
    return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* able, const CUatomicOperation* operations, unsigned count,
                                          CUdevice from, CUdevice to) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const auto known = [](CUatomicOperation o) { return o >= 0 && o < CU_ATOMIC_OPERATION_MAX; };
  if (able == nullptr || operations == nullptr || count == 0 || !std::all_of(operations, operations + count, known))
    return CUDA_ERROR_INVALID_VALUE;
  if (check_device(from) != CUDA_SUCCESS || check_device(to) != CUDA_SUCCESS || from == to)
    return CUDA_ERROR_INVALID_DEVICE;
  std::fill_n(able, count, 0U);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto get = [&](CUdevice_attribute a) { return info(device).attribute[a]; };
  *properties = cuabi::device_properties(get);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  constexpr int least = sizeof "0000:00:00.0";  // the driver writes nothing into a smaller buffer
  return length < least ? CUDA_ERROR_INVALID_VALUE : copy_text(id, length, info(device).bus_id);
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<BusPlace> wanted = parse_bus_id(id);
  if (!wanted) return CUDA_ERROR_INVALID_VALUE;
  for (std::uint32_t i = 0; i < device_count(); ++i)
    if (const auto& bus_id = device_info(i).bus_id;
        parse_bus_id(std::string(bus_id, strnlen(bus_id, sizeof bus_id)).c_str()) == wanted) {
      *device = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_DEVICE;
}

// Two devices of a session are never peers of each other.
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  const Context* of_peer = find_context(peer);
  if (of_peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!of_peer->lives()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuCtxEnablePeerAccess"), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  Context* context = nullptr;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (find_context(peer) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return refuse(refusal_of("cuCtxDisablePeerAccess"), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

}  // namespace guest::calls
