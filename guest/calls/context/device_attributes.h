// Device attributes whose value in the guest differs from the driver's, because the transport cannot offer the
// capability. Each line has the guest's value and the reason. The guest reports the driver's value for all other
// attributes.
#pragma once

#include "ring/api/cuda.h"

namespace guest {

struct AttributeRule {
  CUdevice_attribute attribute;
  int value;
  const char* reason;
};

inline constexpr AttributeRule attribute_rules[] = {
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0, "the GPU maps the arena, not the guest's pages"},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0,
     "the GPU does not walk the guest's page tables"},
    {CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0, "the guest does not map the GPU's memory"},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0,
     "the GPU reaches registered memory by its block's address in the arena"},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0, "the first form of stream memory operations is not served"},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0,
     "the first form of stream memory operations is not served"},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 0,
     "the first form of stream memory operations is not served"},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0, "descriptors do not cross the boundary"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0, "descriptors do not cross the boundary"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0, "descriptors do not cross the boundary"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0, "the host's memory is not the guest's"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0, "the host's memory is not the guest's"},
    {CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0, "the host's memory is not the guest's"},
    {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0, "the host's memory is not the guest's"},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0, "the guest has no peer device"},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0, "descriptors do not cross the boundary"},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0, "IPC between guest processes is not served yet"},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0, "multicast objects are not served yet"},
};

}  // namespace guest
