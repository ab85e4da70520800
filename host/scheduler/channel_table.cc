#include "host/scheduler/channel_table.h"

#include <algorithm>
#include <map>

namespace host::scheduler {

std::vector<SwitchedChannel> read_channels(const ring::ChannelTable& table, std::uint32_t rm_client,
                                           std::uint32_t& version) {
  version = table.version.load(std::memory_order_acquire);
  if (rm_client == 0) return {};
  const std::size_t count = std::min<std::size_t>(table.count.load(std::memory_order_relaxed), table.most);
  std::map<std::uint32_t, std::uint32_t> serial_of;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t handle = table.channel[i].handle.load(std::memory_order_relaxed);
    serial_of[handle] = table.channel[i].serial.load(std::memory_order_relaxed);
  }
  std::vector<SwitchedChannel> all;
  for (const auto& [handle, serial] : serial_of) all.push_back({rm_client, handle, serial});
  return all;
}

}  // namespace host::scheduler
