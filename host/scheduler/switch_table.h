// The disabled channels of one GPU. The driver counts: if a channel was disabled twice, it must be enabled twice before
// it runs. This table therefore disables each channel at most once.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "host/scheduler/helper_protocol.h"
#include "host/scheduler/rm_client.h"

namespace host::scheduler {

class SwitchTable {
 public:
  // Switches channels in the driver, in order, and stops at the first refusal (rm::GpuClient::switch_channels()).
  using Driver = std::function<std::int64_t(std::span<const rm::ChannelRef>, bool off)>;
  struct Result {
    std::uint32_t failed = 0;
    std::int64_t refused = 0;
  };

  explicit SwitchTable(Driver driver) : driver_(std::move(driver)) {}

  // `forced`: also enables channels that this table has not disabled, because an earlier helper may have disabled them.
  Result on(std::span<const SwitchedChannel> channels, bool forced = false);
  // Disables channels. If a disabled channel of the same clients is not listed, it has ended, and the table forgets it.
  Result off(std::span<const SwitchedChannel> channels);
  Result all_on();
  bool any_off() const { return !off_.empty(); }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // client, channel, serial
  static Key key_of(const SwitchedChannel& c) { return {c.client, c.channel, c.serial}; }
  Result switch_all(const std::vector<rm::ChannelRef>& channels, bool off,
                    const std::function<void(std::size_t)>& done);

  const Driver driver_;
  std::set<Key> off_;
};

}  // namespace host::scheduler
