// The channel groups that a process has on its GPUs. The worker's ioctl() passes it the driver library's requests to
// the resource manager and their results; no other interface reports the channels of a context.
//
// Thread-safety: any thread may call.
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
  int fd = -1;  // the descriptor used to make it; the driver library keeps that open while the client lives
  std::uint32_t engine = 0;
  std::vector<Channel> channels;

  bool computes() const { return engine >= first_compute_engine && engine <= last_compute_engine; }
};

class GroupLog {
 public:
  // Call it after an ioctl() that returned 0. True if groups have changed.
  bool note(int fd, unsigned long request, const void* argument);

  // The client of the oldest group: a driver library has one client for all its contexts. 0 if there is no group.
  Handle client() const;
  // Groups of compute engines on the GPU with this driver number, oldest first.
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
