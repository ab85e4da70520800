#include "host/scheduler/switch_table.h"

#include <algorithm>

namespace host::scheduler {

SwitchTable::Result SwitchTable::on(std::span<const SwitchedChannel> channels, bool forced) {
  std::vector<rm::ChannelRef> list;
  for (const SwitchedChannel& one : channels)
    if (off_.erase(key_of(one)) != 0 || forced) list.push_back({one.client, one.channel});
  return switch_all(list, false, [](std::size_t) {});
}

SwitchTable::Result SwitchTable::off(std::span<const SwitchedChannel> channels) {
  std::set<std::uint32_t> clients;
  std::set<Key> live;
  for (const SwitchedChannel& one : channels) clients.insert(one.client), live.insert(key_of(one));
  std::erase_if(off_, [&](const Key& key) { return clients.contains(std::get<0>(key)) && !live.contains(key); });
  std::vector<rm::ChannelRef> list;
  std::vector<Key> keys;
  for (const Key& key : live) {
    if (off_.contains(key)) continue;
    keys.push_back(key);
    list.push_back({std::get<0>(key), std::get<1>(key)});
  }
  return switch_all(list, true, [&](std::size_t i) { off_.insert(keys[i]); });
}

SwitchTable::Result SwitchTable::all_on() {
  std::vector<rm::ChannelRef> list;
  for (const auto& [client, channel, serial] : off_) list.push_back({client, channel});
  off_.clear();
  return switch_all(list, false, [](std::size_t) {});
}

// Switches channels. If the driver refuses a list, it has switched an unknown number of channels at the list's start.
// Enabling all channels of the list is harmless; then each channel is switched by a call of its own.
SwitchTable::Result SwitchTable::switch_all(const std::vector<rm::ChannelRef>& channels, bool off,
                                            const std::function<void(std::size_t)>& done) {
  Result result;
  const std::span<const rm::ChannelRef> all(channels);
  for (std::size_t begin = 0; begin < all.size(); begin += rm::channels_a_call) {
    const auto part = all.subspan(begin, std::min(rm::channels_a_call, all.size() - begin));
    const bool together = driver_(part, off) == 0;
    if (!together && off)
      for (const rm::ChannelRef& one : part) driver_({&one, 1}, false);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::int64_t refused = together ? 0 : driver_(part.subspan(i, 1), off);
      if (refused == 0)
        done(begin + i);
      else
        ++result.failed, result.refused = refused;
    }
  }
  return result;
}

}  // namespace host::scheduler
