// The channel groups that a process has on its GPUs. The worker's ioctl() passes the driver library's requests to the
// resource manager, and their results, to this class. No other interface reports the channels of a context.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "host/scheduler/rm_api.h"
#include "ring/base/mutex.h"

namespace host::rm {

struct Channel {
  Handle handle;
  std::uint32_t serial;  // unique among the process's channels
};
struct Group {
  Handle client = 0, group = 0, device = 0;
  int fd = -1;  // the descriptor by which the client was made; the driver library keeps it open while the client exists
  std::uint32_t engine = 0;
  std::vector<Channel> channels;

  bool computes() const { return engine >= first_compute_engine && engine <= last_compute_engine; }
};

class GroupLog {
 public:
  // Must be called after an ioctl() that returned 0. Returns whether groups have changed.
  bool note(int fd, unsigned long request, const void* argument);

  // Returns the client of the oldest group, or 0 if there is no group. A driver library has one client for all its
  // contexts.
  Handle client() const;
  // Returns the groups of compute engines on the GPU with this driver number, oldest first.
  std::vector<Group> compute_groups(std::uint32_t instance) const;

 private:
  struct Device {
    Handle client, device;
    std::uint32_t instance;
  };

  bool note_alloc(int fd, const Alloc& alloc);
  bool note_free(Handle client, Handle object);

  mutable ring::Mutex mutex_;
  std::vector<Device> devices_ GUARDED_BY(mutex_);
  std::vector<Group> groups_ GUARDED_BY(mutex_);
  std::uint32_t serial_ GUARDED_BY(mutex_) = 0;
};

}  // namespace host::rm
