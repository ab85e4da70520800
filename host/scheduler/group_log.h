// The channel groups that a process has on its GPUs. A worker's ioctl() passes here what the driver library has asked of the
// resource manager, and what it got; nothing else tells which channels a context has.
//
// Thread-safety: any thread may call.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "host/scheduler/rm_api.h"

namespace host::rm {

struct Channel {
  Handle handle;
  std::uint32_t serial;  // no other channel of the process has it
};
struct Group {
  Handle client = 0, group = 0, device = 0;
  int fd = -1;  // through which it was made; the driver library keeps it open while the client lives
  std::uint32_t engine = 0;
  std::vector<Channel> channels;

  bool computes() const { return engine >= first_compute_engine && engine <= last_compute_engine; }
};

class GroupLog {
 public:
  // After an ioctl() that returned 0. True: groups have changed.
  bool note(int fd, unsigned long request, const void* argument);

  // The client that has made the oldest group: a driver library has one for all its contexts. 0: there is no group.
  Handle client() const;
  // Those of compute engines on the GPU with this number of the driver's, oldest first.
  std::vector<Group> compute_groups(std::uint32_t instance) const;

 private:
  struct Device {
    Handle client, device;
    std::uint32_t instance;
  };

  bool note_alloc(int fd, const Alloc& alloc);
  bool note_free(Handle client, Handle object);

  mutable std::mutex mutex_;
  std::vector<Device> devices_;
  std::vector<Group> groups_;
  std::uint32_t serial_ = 0;
};

}  // namespace host::rm
