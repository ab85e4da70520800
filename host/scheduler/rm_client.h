// A client of the resource manager for one GPU, with nothing but a device and a subdevice: enough to switch channels of other
// processes off the GPU and on again. It uses no libcuda.
//
// Thread-safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "host/scheduler/rm_api.h"

namespace host::rm {

using Uuid = std::array<std::uint8_t, 16>;

struct ChannelRef {
  Handle client, channel;
  bool operator==(const ChannelRef&) const = default;
};

class GpuClient {
 public:
  // `control_fd`: /dev/nvidiactl, opened for this client alone. `gpu_fd`: the GPU's own device file. Both stay the caller's
  // and outlive the client. Null where the driver refuses; `error` is one sentence.
  static std::unique_ptr<GpuClient> create(int control_fd, int gpu_fd, const Uuid& gpu, std::string& error);
  ~GpuClient();
  GpuClient(const GpuClient&) = delete;
  GpuClient& operator=(const GpuClient&) = delete;

  // Takes these channels off the GPU, with what they run, or lets them on again; returns when they are off. Returns the
  // driver's status, or a negative errno. More than `channels_a_call` channels take more calls; the first failure ends them.
  std::int64_t switch_channels(std::span<const ChannelRef> channels, bool off);

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
