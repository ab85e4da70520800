#include "host/worker/channel_report.h"

#include <atomic>

#include "host/scheduler/group_log.h"
#include "ring/base/mutex.h"

namespace host::worker {
namespace {

rm::GroupLog& groups() {
  static rm::GroupLog log;
  return log;
}

ring::Mutex mutex;
ring::UsePage* reported_in GUARDED_BY(mutex) = nullptr;

void report(ring::ChannelTable& table, std::uint32_t instance, std::uint32_t client) REQUIRES(mutex) {
  std::uint32_t count = 0;
  const std::uint32_t version = table.version.load(std::memory_order_relaxed);
  table.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (const rm::Group& group : groups().compute_groups(instance))
    for (const rm::Channel& channel : group.channels) {
      if (group.client != client) continue;
      if (count < table.most) {
        table.channel[count].handle.store(channel.handle, std::memory_order_relaxed);
        table.channel[count].serial.store(channel.serial, std::memory_order_relaxed);
      }
      ++count;
    }
  table.count.store(count, std::memory_order_relaxed);
  table.version.store(version + 2, std::memory_order_release);
}

void report_all() {
  ring::MutexLock lock(mutex);
  if (reported_in == nullptr) return;
  for (std::uint32_t instance = 0; instance < ring::max_devices; ++instance)
    report(reported_in->channels[instance], instance, groups().client());
}

}  // namespace

void report_channels_in(ring::UsePage* page) {
  {
    ring::MutexLock lock(mutex);
    reported_in = page;
  }
  report_all();
}

void note_request(int fd, unsigned long request, const void* argument) {
  if (groups().note(fd, request, argument)) report_all();
}

std::uint32_t rm_client() { return groups().client(); }

}  // namespace host::worker
