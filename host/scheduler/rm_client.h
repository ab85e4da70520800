// A client of the resource manager for one GPU. With its device and subdevice objects, the client can disable and
// enable channels of other processes on that GPU. The client uses no libcuda.
//
// Thread-safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "host/base/result.h"
#include "host/scheduler/rm_api.h"

namespace host::rm {

using Uuid = std::array<std::uint8_t, 16>;

struct ChannelRef {
  Handle client, channel;
  bool operator==(const ChannelRef&) const = default;
};

class GpuClient {
 public:
  // Creates a client. `control_fd`: /dev/nvidiactl, opened for this client alone. `gpu_fd`: the GPU's device file. The
  // caller owns both descriptors, which must outlive the client. Returns an error of one sentence if the driver
  // refuses.
  static Result<std::unique_ptr<GpuClient>> create(int control_fd, int gpu_fd, const Uuid& gpu);
  ~GpuClient();
  GpuClient(const GpuClient&) = delete;
  GpuClient& operator=(const GpuClient&) = delete;

  // Disables these channels, together with their running work, or enables the channels again. Returns when this has
  // taken effect. The result is the driver's status or a negative errno. Each call of the driver switches
  // `channels_a_call` channels; the first failure ends the loop.
  [[nodiscard]] std::int64_t switch_channels(std::span<const ChannelRef> channels, bool off);

  std::uint32_t instance() const { return instance_; }  // the driver's number of the GPU

 private:
  GpuClient(int fd, Handle client, std::uint32_t instance) : fd_(fd), client_(client), instance_(instance) {}
  bool make_objects();
  bool is(const Uuid& gpu) const;

  const int fd_;
  const Handle client_;
  const std::uint32_t instance_;
};

}  // namespace host::rm
