// How much managed memory processes have: the kernel module nvidia-uvm gives it on whichever GPU touches it, and NVIDIA's
// management library names it to nobody.
//
// Source: tests/probes/managed.cc on an H100 and an H200, driver 580.159.04: a process maps the module's device file for
// managed memory, to the byte in pieces of 2 MiB, and 2 MiB for each context; for no other way of taking memory. Managed
// memory goes with its mapping.
//
// Trust: a process chooses how long its list is and, by its threads, how long the kernel takes for it. So each list has a
// bound in bytes and in time, and whoever waits for the lists waits for a bounded time. Names in a list can only add to
// what their own process has.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace host::broker {

// What one look at a process's list found.
struct Mapped {
  enum class End : std::uint8_t {
    Whole,
    TooLong,  // an honest process's is far shorter: something may lie behind
    TooSlow,  // what was read so far tells nothing
    Unread,   // `why`
  };
  End end = End::Whole;
  std::uint64_t bytes = 0;
  std::string why = {};
};

using MapsClock = std::chrono::steady_clock;
// `maps`: a text as /proc/PID/maps; read until its end, for 4 MiB, or until then.
Mapped managed_in(std::istream& maps, MapsClock::time_point until);
// Of a process of this machine; nothing of one that has ended.
Mapped managed_memory_of(pid_t process);

// Reads the lists of many in a thread of its own, one after the other. Calls: one thread's.
class ManagedMemory {
 public:
  using Read = std::function<Mapped(pid_t)>;
  explicit ManagedMemory(Read read = managed_memory_of);
  ~ManagedMemory();  // waits for the list that is being read
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;

  struct Held {
    std::optional<std::uint64_t> bytes;  // nothing: more than anybody has, as far as is known
    std::string unread;                  // why it is not known now; `bytes` is what was known before
  };
  // What each of these has. Waits for `patience` at most: of those that it has not come to by then the last answer counts.
  std::map<pid_t, Held> look(const std::set<pid_t>& processes, std::chrono::milliseconds patience);

  // So often in a row may a list be too slow before its process counts as one that hides something.
  static constexpr int most_slow = 8;

 private:
  struct Known {
    Held held{0, ""};
    int slow = 0;
  };
  void run();
  void note(Known& known, const Mapped& mapped);

  const Read read_;
  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::set<pid_t> left_;  // to be read
  std::map<pid_t, Known> known_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace host::broker
