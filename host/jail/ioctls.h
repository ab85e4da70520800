// The ioctl requests that a worker may send to NVIDIA's kernel modules while it serves a guest. A request is listed by
// its whole number, including the argument's size. tools/dev/record-ioctls recorded the requests on one and on two H200
// GPUs, with all programs that exercise the driver. A new driver, or a newly served call, needs a new recording.
//
// The filter sees the number and not the device. Some numbers allow many operations: RM_CONTROL and RM_ALLOC read a
// command or a class from memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace host::jail {

inline constexpr std::string_view recorded_driver = "580.159.04";
inline constexpr std::uint32_t recorded_gpus = 2;  // the finished jail permits a context on a second GPU

struct Request {
  std::uint32_t number;
  const char* devices;  // devices that got the request: nvidiactl, nvidia0 and on (gpu), nvidia-uvm (uvm)
  const char* name;     // the request's name in NVIDIA's open kernel modules
  std::string_view why;
};

// The requests that were recorded in the finished jail. Requests that the driver makes earlier, at its start, are not
// listed.
inline constexpr Request listed_requests[] = {
    {0xc0384627, "gpu", "NV_ESC_RM_ALLOC_MEMORY", "pinned memory"},
    {0xc0104629, "nvidiactl", "NV_ESC_RM_FREE", "objects of the resource manager end"},
    {0xc01c4634, "nvidiactl", "NV_ESC_RM_DUP_OBJECT",
     "one GPU's memory in another's address space; with two GPUs only"},
    {0xc020462a, "nvidiactl", "NV_ESC_RM_CONTROL", "commands to such objects"},
    {0xc030462b, "nvidiactl, gpu", "NV_ESC_RM_ALLOC", "such objects: memory, channels, address spaces"},
    {0xc038464e, "nvidiactl", "NV_ESC_RM_MAP_MEMORY", "device memory that the processor sees"},
    {0xc020464f, "nvidiactl", "NV_ESC_RM_UNMAP_MEMORY", "the same, its end"},
    {0xc028465e, "nvidiactl", "NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO", "where such a mapping lies"},
    {0xc00446c9, "gpu", "NV_ESC_REGISTER_FD", "a device's descriptor belongs to a control descriptor"},
    {0xc01046ce, "gpu", "NV_ESC_ALLOC_OS_EVENT", "waits that sleep"},
    {0xc01046cf, "gpu", "NV_ESC_FREE_OS_EVENT", "the same, their end"},
    {23, "uvm", "UVM_CREATE_RANGE_GROUP", "address ranges of allocations"},
    {24, "uvm", "UVM_DESTROY_RANGE_GROUP", "the same, their end"},
    {25, "uvm", "UVM_REGISTER_GPU_VASPACE", "a context made anew after cuDevicePrimaryCtxReset"},
    {26, "uvm", "UVM_UNREGISTER_GPU_VASPACE", "the same, its end"},
    {27, "uvm", "UVM_REGISTER_CHANNEL", "the GPU's queues of such a context"},
    {28, "uvm", "UVM_UNREGISTER_CHANNEL", "the same, their end"},
    {31, "uvm", "UVM_SET_RANGE_GROUP", "a module with a managed variable is loaded"},
    {33, "uvm", "UVM_MAP_EXTERNAL_ALLOCATION", "memory gets its address on the GPU"},
    {34, "uvm", "UVM_FREE", "and loses it"},
    {43, "uvm", "UVM_UNSET_PREFERRED_LOCATION", "the same"},
    {45, "uvm", "UVM_DISABLE_READ_DUPLICATION", "the same"},
    {47, "uvm", "UVM_UNSET_ACCESSED_BY", "the same"},
    {65, "uvm", "UVM_MAP_DYNAMIC_PARALLELISM_REGION", "such a context"},
    {66, "uvm", "UVM_UNMAP_EXTERNAL", "the access to mapped memory changes"},
    {68, "uvm", "UVM_ALLOC_SEMAPHORE_POOL", "such a context"},
    {72, "uvm", "UVM_VALIDATE_VA_RANGE", "whether an address range is free"},
    {73, "uvm", "UVM_CREATE_EXTERNAL_RANGE", "an address range for memory of the resource manager"},
    {74, "uvm", "UVM_MAP_EXTERNAL_SPARSE", "the address range of a sparse array"},
};

constexpr bool is_listed(std::uint32_t number) {
  for (const Request& request : listed_requests)
    if (request.number == number) return true;
  return false;
}

enum class Requests {
  None,    // the driver has no device file open
  Listed,  // the requests of listed_requests
  Any,     // every request of every device file that the worker can open
};

// Returns the kernel module's version from `version_file`; empty if there is none.
std::string kernel_driver(const std::string& version_file = "/proc/driver/nvidia/version");

struct Choice {
  Requests requests;
  std::string missing;  // the reason if the list was requested but is not in force
};
// Chooses the requests that a worker's filter allows. If the driver is another one, or if there are more GPUs than
// recorded, the list is not used: the needed requests are then unknown, and the filter could refuse a request late, in
// the middle of a guest's work. `gpus`: the number of GPUs that the driver reports.
Choice choose_requests(bool device_files, bool any_wanted, const std::string& driver, std::uint32_t gpus);

}  // namespace host::jail
