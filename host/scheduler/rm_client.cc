#include "host/scheduler/rm_client.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace host::rm {
namespace {

// The handles that this client has chosen.
constexpr Handle device = 0x1f0080, subdevice = 0x1f2080;

// Makes a request. Returns 0 or a negative errno.
template <class Parameters>
int ask(int fd, Escape escape, Parameters& parameters) {
  const auto number = _IOC(_IOC_READ | _IOC_WRITE, escape_magic, escape, sizeof(Parameters));
  return ioctl(fd, number, &parameters) == 0 ? 0 : -errno;
}

std::int64_t result_of(int rc, std::uint32_t status) { return rc != 0 ? rc : std::int64_t{status}; }

template <class Parameters>
std::uint64_t address_of(Parameters& parameters) {
  return reinterpret_cast<std::uintptr_t>(&parameters);
}

template <class Parameters>
std::int64_t control(int fd, Handle client, Handle object, std::uint32_t command, Parameters& parameters) {
  Control call{client, object, command, 0, address_of(parameters), sizeof parameters, 0};
  const int rc = ask(fd, escape_control, call);
  return result_of(rc, call.status);
}

// Allocates an object. `object`: if 0, the resource manager chooses the handle and returns it in `object`.
std::int64_t allocate(int fd, Handle client, Handle parent, Handle& object, std::uint32_t object_class,
                      void* parameters, std::uint32_t bytes) {
  Alloc call{client, parent, object, object_class, reinterpret_cast<std::uintptr_t>(parameters), 0, bytes, 0, 0};
  const int rc = ask(fd, escape_alloc, call);
  object = call.object;
  return result_of(rc, call.status);
}

void end(int fd, Handle client) {
  Free call{client, 0, client, 0};
  ask(fd, escape_free, call);
}

}  // namespace

Result<std::unique_ptr<GpuClient>> GpuClient::create(int fd, int gpu_fd, const Uuid& gpu) {
  if (const int refused = ask(gpu_fd, escape_register, fd); refused != 0)
    return Error{"the GPU's device file does not accept a control descriptor: " + std::to_string(refused)};
  Handle root = 0;
  if (const auto refused = allocate(fd, 0, 0, root, root_class, nullptr, 0); refused != 0)
    return Error{"the driver gives no client of its resource manager: " + std::to_string(refused)};
  AttachedIds ids{};
  std::ranges::fill(ids.id, invalid_id);
  std::int64_t refused = control(fd, root, root, get_attached_ids, ids);
  for (std::size_t i = 0; refused == 0 && i < std::size(ids.id) && ids.id[i] != invalid_id; ++i) {
    IdInfo info{};
    info.id = ids.id[i];
    // A control descriptor has access to one GPU, so the resource manager may refuse queries about other GPUs.
    if (control(fd, root, root, get_id_info, info) != ok) continue;
    std::unique_ptr<GpuClient> client(new GpuClient(fd, root, info.device_instance));
    if (client->make_objects() && client->is(gpu)) return client;
    client.reset();  // the client's end also frees its root object
    root = 0;
    refused = allocate(fd, 0, 0, root, root_class, nullptr, 0);
  }
  end(fd, root);
  return Error{refused != 0 ? "the resource manager does not name its GPUs: " + std::to_string(refused)
                            : "the resource manager has no such GPU"};
}

GpuClient::~GpuClient() { end(fd_, client_); }

bool GpuClient::make_objects() {
  DeviceParameters of_device{};
  of_device.instance = instance_;
  std::uint32_t of_subdevice = 0;  // the layout of NV2080_ALLOC_PARAMETERS: the subdevice's number
  Handle device_made = device, subdevice_made = subdevice;
  return allocate(fd_, client_, client_, device_made, device_class, &of_device, sizeof of_device) == ok &&
         allocate(fd_, client_, device, subdevice_made, subdevice_class, &of_subdevice, sizeof of_subdevice) == ok;
}

bool GpuClient::is(const Uuid& gpu) const {
  GidInfo info{};
  info.flags = gid_is_binary;
  return control(fd_, client_, subdevice, get_gid_info, info) == ok && info.length == gpu.size() &&
         std::memcmp(info.data, gpu.data(), gpu.size()) == 0;
}

std::int64_t GpuClient::switch_channels(std::span<const ChannelRef> channels, bool off) {
  while (!channels.empty()) {
    DisableChannels call{};
    call.disable = off;
    for (const ChannelRef& one : channels.first(std::min(channels.size(), channels_a_call))) {
      call.client[call.count] = one.client;
      call.channel[call.count++] = one.channel;
    }
    if (const auto refused = control(fd_, client_, subdevice, disable_channels, call); refused != 0) return refused;
    channels = channels.subspan(call.count);
  }
  return 0;
}

}  // namespace host::rm
