// The parts of the resource manager's interface that we use. The resource manager is the interface between NVIDIA's
// libraries and its kernel modules. Numbers and structures are from the open kernel modules 580.105.08 (MIT licence),
// below src/common/sdk/nvidia/inc and src/nvidia/arch/nvalloc/unix/include.
//
// The interface may change from driver to driver. Both users of this file check sizes and results, and work without the
// interface if a check fails (docs/design/048-gpu-time.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace host::rm {

using Handle = std::uint32_t;

// The ioctl numbers of /dev/nvidiactl and /dev/nvidiaN are from nv_escape.h and nv-ioctl-numbers.h.
inline constexpr unsigned char escape_magic = 'F';
// `escape_register`, on a GPU's own descriptor, gives the clients of a control descriptor access to that GPU.
enum Escape : std::uint8_t { escape_free = 0x29, escape_control = 0x2a, escape_alloc = 0x2b, escape_register = 0xc9 };

// The classes are from cl0000.h, cl0080.h, cl2080.h and cla06c.h. The number of a channel's class ends with 6f:
// cla06f.h to clca6f.h.
inline constexpr std::uint32_t root_class = 0x41, device_class = 0x80, subdevice_class = 0x2080, group_class = 0xa06c;
constexpr bool is_channel_class(std::uint32_t c) { return (c & 0xff) == 0x6f && c >= 0xa06f && c <= 0xffff; }

inline constexpr std::uint32_t ok = 0, gpu_is_lost = 0x0f;  // from nvstatuscodes.h

struct Free {  // the layout of NVOS00_PARAMETERS
  Handle client, parent, object;
  std::uint32_t status;
};
struct ShortAlloc {  // the layout of NVOS21_PARAMETERS
  Handle client, parent, object;
  std::uint32_t object_class;
  std::uint64_t parameters;
  std::uint32_t bytes, status;
};
struct Alloc {  // the layout of NVOS64_PARAMETERS
  Handle client, parent, object;
  std::uint32_t object_class;
  std::uint64_t parameters, rights;
  std::uint32_t bytes, flags, status;
};
struct Control {  // the layout of NVOS54_PARAMETERS
  Handle client, object;
  std::uint32_t command, flags;
  std::uint64_t parameters;
  std::uint32_t bytes, status;
};
static_assert(sizeof(Free) == 16 && sizeof(ShortAlloc) == 32 && sizeof(Alloc) == 48 && sizeof(Control) == 32);

struct DeviceParameters {  // the layout of NV0080_ALLOC_PARAMETERS
  std::uint32_t instance, client_share, target_client, target_device, flags;
  std::uint64_t space_bytes, space_start, space_limit;
  std::uint32_t space_mode;
};
struct GroupParameters {  // the layout of NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS
  Handle error_object, ecc_error_object, address_space;
  std::uint32_t engine;  // NV2080_ENGINE_TYPE: 1 to 8 are compute and graphics engines, 9 and higher are copy engines
  std::uint8_t is_plugin_context;
};
static_assert(sizeof(DeviceParameters) == 56 && sizeof(GroupParameters) == 20);
inline constexpr std::uint32_t first_compute_engine = 1, last_compute_engine = 8;

// NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS of ctrl0000gpu.h: lists the GPUs.
inline constexpr std::uint32_t get_attached_ids = 0x201;
struct AttachedIds {
  std::uint32_t id[32];  // the list ends with invalid_id
};
inline constexpr std::uint32_t invalid_id = 0xffffffff;
// NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2 of ctrl0000gpu.h: reports the numbers of one GPU.
inline constexpr std::uint32_t get_id_info = 0x205;
struct IdInfo {
  std::uint32_t id, flags, device_instance, subdevice_instance, sli_status, board, gpu_instance;
  std::int32_t numa_node;
};
static_assert(sizeof(AttachedIds) == 128 && sizeof(IdInfo) == 32);

// NV2080_CTRL_CMD_GPU_GET_GID_INFO of ctrl2080gpu.h: reports the UUID of a GPU.
inline constexpr std::uint32_t get_gid_info = 0x2080014a;
inline constexpr std::uint32_t gid_is_binary = 2;
struct GidInfo {
  std::uint32_t index, flags, length;
  std::uint8_t data[256];
};
static_assert(sizeof(GidInfo) == 268);

// NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS of ctrl2080fifo.h. The listed channels may belong to any clients.
inline constexpr std::uint32_t disable_channels = 0x2080110b;
inline constexpr std::size_t channels_a_call = 64;
struct DisableChannels {
  std::uint8_t disable;
  std::uint32_t count;
  std::uint8_t only_scheduling, rewind;
  std::uint64_t event;
  Handle client[channels_a_call], channel[channels_a_call];
};
static_assert(sizeof(DisableChannels) == 536);

}  // namespace host::rm
