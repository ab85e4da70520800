#include "host/scheduler/group_log.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "ring/base/mutex.h"

namespace host::rm {

bool GroupLog::note(int fd, unsigned long request, const void* argument) {
  if (_IOC_TYPE(request) != escape_magic || argument == nullptr) return false;
  const unsigned long escape = _IOC_NR(request), bytes = _IOC_SIZE(request);
  if (escape == escape_alloc && bytes == sizeof(Alloc)) return note_alloc(fd, *static_cast<const Alloc*>(argument));
  if (escape == escape_alloc && bytes == sizeof(ShortAlloc)) {
    const auto& a = *static_cast<const ShortAlloc*>(argument);
    return note_alloc(
        fd, {a.client, a.parent, a.object, a.object_class, a.parameters, /*rights=*/0, a.bytes, /*flags=*/0, a.status});
  }
  if (escape == escape_free && bytes == sizeof(Free)) {
    const auto& f = *static_cast<const Free*>(argument);
    return f.status == ok && note_free(f.client, f.object);
  }
  return false;
}

bool GroupLog::note_alloc(int fd, const Alloc& alloc) {
  if (alloc.status != ok) return false;
  // A size of 0 means the default size of the class.
  const auto parameters_of = [&]<class T>(const T*) {
    const bool is_there = alloc.parameters != 0 && (alloc.bytes == 0 || alloc.bytes >= sizeof(T));
    return is_there ? reinterpret_cast<const T*>(alloc.parameters) : nullptr;
  };
  ring::MutexLock lock(mutex_);
  if (alloc.object_class == device_class) {
    const auto* p = parameters_of(static_cast<const DeviceParameters*>(nullptr));
    devices_.push_back({alloc.client, alloc.object, p != nullptr ? p->instance : 0});
    return false;
  }
  if (alloc.object_class == group_class) {
    const auto* p = parameters_of(static_cast<const GroupParameters*>(nullptr));
    groups_.push_back({alloc.client, alloc.object, alloc.parent, fd, p != nullptr ? p->engine : 0, {}});
    return true;
  }
  if (!is_channel_class(alloc.object_class)) return false;
  const auto group = std::ranges::find_if(
      groups_, [&](const Group& one) { return one.client == alloc.client && one.group == alloc.parent; });
  if (group == groups_.end()) return false;
  group->channels.push_back({alloc.object, ++serial_});
  return true;
}

// An object ends with its parent.
bool GroupLog::note_free(Handle client, Handle object) {
  ring::MutexLock lock(mutex_);
  const bool all = object == client;
  std::erase_if(devices_, [&](const Device& d) { return d.client == client && (all || d.device == object); });
  std::size_t changed = std::erase_if(
      groups_, [&](const Group& g) { return g.client == client && (all || g.device == object || g.group == object); });
  for (Group& group : groups_)
    if (group.client == client)
      changed += std::erase_if(group.channels, [&](const Channel& c) { return c.handle == object; });
  return changed != 0;
}

Handle GroupLog::client() const {
  ring::MutexLock lock(mutex_);
  return groups_.empty() ? 0 : groups_.front().client;
}

std::vector<Group> GroupLog::compute_groups(std::uint32_t instance) const {
  ring::MutexLock lock(mutex_);
  std::vector<Group> found;
  for (const Group& group : groups_) {
    const auto device = std::ranges::find_if(
        devices_, [&](const Device& d) { return d.client == group.client && d.device == group.device; });
    if (group.computes() && device != devices_.end() && device->instance == instance) found.push_back(group);
  }
  return found;
}

}  // namespace host::rm
