#include "host/broker/region/heartbeat.h"

namespace host::broker {
namespace {

using std::chrono::milliseconds;

// As often as a waiting guest would request it by a doorbell.
constexpr auto between_last_beats = milliseconds(100);

}  // namespace

void Heartbeat::beat() { region_.header()[&ring::RegionHeader::heartbeat].store(++count_, std::memory_order_release); }

// The look finds changes that a guest made without a doorbell, because it died before or wrote garbage. It also checks
// Dead slots, whose owners may have died as well.
void Heartbeat::beat_while_needed() {
  if (!acts_.is_needed()) return stop();
  if (timer_ != 0) return;
  timer_ = loop_.after(ending_ ? between_last_beats : milliseconds(ring::heartbeat_ms), [this] {
    timer_ = 0;
    if (!ending_) return acts_.look();
    beat();
    beat_while_needed();
  });
}

void Heartbeat::adopt() { count_ = region_.header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed); }

void Heartbeat::begin_end() {
  ending_ = true;
  stop();
  beat_while_needed();
}

}  // namespace host::broker
