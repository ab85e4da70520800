// This process's session with a worker: the slot it has claimed, its channels, objects and arena. One per process, made
// by cuInit, never destroyed (programs call into us until their last breath).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "guest/channel/channel.h"
#include "guest/objects/arena.h"
#include "guest/objects/objects.h"
#include "guest/region/region.h"
#include "ring/api/call.h"
#include "ring/api/records.h"
#include "ring/view.h"

namespace guest {

class Session {
 public:
  // Claims a slot of the region and greets its worker; another slot where somebody has spoilt that one. Null and a log
  // line when there is none to be had in time, or it refuses. `reserve_device`: keep device addresses out of this
  // process's mappings (off where the simulated GPU lives in it, in tests).
  static std::unique_ptr<Session> open(std::unique_ptr<Region> region, bool reserve_device = true);
  ~Session();

  const ring::DevicePage& devices() const { return devices_; }
  // The context's sticky error, CUDA_SUCCESS if there is none.
  CUresult fault() const {
    return static_cast<CUresult>(slot_.header()[&ring::SlotHeader::fault].load(std::memory_order_acquire));
  }

  // Whether kernels have printed something that nobody has fetched, or an error has been explained.
  bool output_waiting() const { return slot_.header()[&ring::SlotHeader::output].load(std::memory_order_relaxed) != 0; }

  // Whether the worker knows this call (docs/wire-format.md, Versions). One that it does not know is never sent:
  // refuse_unserved() names it in the log, once, and gives what it returns.
  bool serves(int call) const { return worker_knows_.contain(call); }
  CUresult refuse_unserved(int call);

  // The calling thread's channel; threads beyond their number share. Given back when the thread ends.
  Channel& acquire_channel();
  void release_channel(Channel& channel);
  // Channels that have been opened so far.
  std::uint32_t open_channels() const { return open_count_.load(std::memory_order_acquire); }
  Channel& channel(std::uint32_t index) { return *channels_[index]; }

  // Liveness. Lost is final: the worker has gone, the connection to the broker has ended, the worker says nonsense, or
  // the process has left. Suspended is not: the broker does not answer, so calls fail at once; later ones ask it again,
  // and go on where it answers and the slot is still ours (docs/design/012-coming-back.md).
  // usable() and lost() are what is known; attached() looks as far as every call can afford; call host_alive() while
  // waiting.
  bool usable() const { return condition_.load(std::memory_order_relaxed) == Condition::Open; }
  bool lost() const { return condition_.load(std::memory_order_relaxed) == Condition::Lost; }
  bool attached();
  bool host_alive();
  void lose(const char* why);
  // A reply that holds less than its call's: what the host has made or ended nobody here knows any more.
  CUresult lose_to_nonsense() { return lose("a reply is shorter than its call's"), CUDA_ERROR_DEVICE_UNAVAILABLE; }

  std::uint64_t spin_nanoseconds() const { return spin_ns_; }
  bool futexes() const { return futexes_; }
  void wake_worker(ring::Shared<std::uint32_t> word);

  // The process ends or lets go: the broker takes the slot back.
  void leave();
  // In a forked child: the session is the parent's.
  void forget() { region_->forget(); }

  bool reserve_device() const { return reserve_device_; }
  // Where the host sees [at, at + bytes) when all of it is memory that the GPU may touch: device memory, or pinned
  // memory by its address here or on the device.
  std::optional<std::uint64_t> device_view(std::uint64_t at, std::uint64_t bytes) const;
  // Where the worker and the GPU see an arena offset.
  std::uint64_t device_address(std::uint64_t arena_offset) const { return arena_address_ + arena_offset; }

  Objects objects;
  Allocations allocations;
  Reservations reservations;
  std::unique_ptr<Arena> arena;
  std::mutex lookups;  // of functions, kernels and modules; taken before any channel's lock
  std::atomic<std::uint64_t> next_buffer_id{1};
  std::atomic<std::uint64_t> staged_bytes{0};  // bulk data through the arena, for the statistics
  KnownDone context_done[ring::max_devices];
  Object null_stream[ring::max_devices];  // what is remembered of each device's NULL stream

 private:
  Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device);
  bool heart_beats();
  bool answers_again();
  bool comes_back();
  bool slot_is_ours() const;
  void suspend();
  bool broker_answers();
  bool claim(std::uint64_t until);
  bool warn_if_full() const;
  bool try_claim(std::uint32_t slot, const ring::SlotOwner& self);
  void free_dead(std::uint32_t slot, const ring::SlotOwner& self);
  void stop_senders();
  enum class Entered : std::uint8_t { Yes, Spoilt, Refused };
  Entered enter_slot();
  Entered map_slot(std::uint64_t start);
  void copy_devices();
  void unmap_slot();
  void make_arena(std::uint64_t arena_bytes, std::uint64_t pin);
  Segments::Registered ask_for_arena(const api::PinArenaRecord& record, bool join);
  std::byte* map_arena(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& window);
  bool greet(std::uint64_t window, std::uint64_t pin_bytes);
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return checked_.view.entry(slot); }
  ring::Shared<ring::RegionHeader> header() const { return checked_.view.header(); }

  std::unique_ptr<Region> region_;
  const CheckedRegion checked_;
  std::uint32_t slot_index_ = 0;
  ring::SlotWord claimed_;  // fixed once the session is open
  bool left_ = false;
  ring::SlotView slot_;
  // What a worker says once, in the slot's header and the device page: copied when the slot is taken.
  std::uint32_t most_channels_ = 1;
  api::KnownIds worker_knows_ = api::known_ids;
  ring::DevicePage devices_{};
  std::byte* arena_base_ = nullptr;
  std::uint64_t arena_bytes_ = 0;
  std::uint64_t arena_address_ = 0;
  std::uint64_t spin_ns_ = 0;
  bool futexes_ = false;
  bool reserve_device_ = true;
  enum class Condition : std::uint8_t { Open, Suspended, Lost };
  std::atomic<Condition> condition_{Condition::Open};
  std::atomic<std::uint64_t> last_look_ms_{0};

  std::mutex channels_mutex_;
  std::array<std::unique_ptr<Channel>, ring::max_channels> channels_;
  std::vector<std::uint32_t> free_channels_;
  std::uint32_t share_next_ = 0;
  std::atomic<std::uint32_t> open_count_{0};

  std::mutex alive_mutex_;
  std::uint64_t last_beat_ = 0, last_question_ns_ = 0;
  int unanswered_ = 0;
};

// The process's session, or null before cuInit has succeeded.
Session* session();
void set_session(Session* session);

}  // namespace guest
