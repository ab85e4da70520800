// One channel of a session on the strict fake driver. The test fills the channel as a guest does.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "host/untrusted/channel.h"
#include "tests/other_side.h"
#include "tests/unit/session/records.h"

namespace session_test {

// put() writes a record after the records that are already in the ring; publish() shows all records to the worker; the
// test's thread serves them.
class Channel {
 public:
  explicit Channel(World& world, std::uint32_t index = 0) : world_(world), index_(index) {}
  Channel& put(int call, const Payload& payload, std::uint16_t flags = ring::flag_wants_reply) {
    const ring::RecordHeader header{.bytes = ring::record_size(payload.size()),
                                    .call = static_cast<std::uint16_t>(call),
                                    .flags = flags,
                                    .position = ++position_};
    std::byte* at = other_side::requests(slot(), index_).data() + tail_;
    std::memcpy(at, &header, sizeof header);
    if (payload.size() != 0) std::memcpy(at + sizeof header, payload.data().data(), payload.size());
    tail_ += header.bytes;
    return *this;
  }
  // Publishes all records, and one more record that ends the session, so that serving returns.
  Channel& publish() {
    put(0xffff, {});
    control().tail = tail_;
    return *this;
  }
  // Serves until a record ends the session. Returns the number of executed records.
  std::uint64_t serve_published() {
    const std::atomic<bool> never{false};
    host::serve_channel(*world_.session, index_, never);
    return control().executed;
  }
  std::uint64_t serve() {
    const std::uint64_t executed = publish().serve_published();
    EXPECT_TRUE(world_.session->protocol.broken.exchange(false));
    return executed;
  }
  ring::ChannelControl& control() const { return other_side::control(slot(), index_); }

 private:
  ring::SlotView slot() const { return world_.session->slot; }
  World& world_;
  const std::uint32_t index_;
  std::uint32_t tail_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace session_test
