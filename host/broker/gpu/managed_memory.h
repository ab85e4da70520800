// Measures the managed memory of processes. The kernel module nvidia-uvm places it on whichever GPU touches it, and
// NVIDIA's management library does not report it.
//
// Source: tests/probes/managed.cc on an H100 and an H200, driver 580.159.04. A process maps the module's device file
// for its managed memory, to the byte in pieces of 2 MiB, and 2 MiB for each context. Other memory does not map this
// file, and the mapping goes when the memory is freed.
//
// Trust: a process controls the length of its list and, by its threads, how long the kernel takes for it. Each list is
// therefore bounded in bytes and time, and callers wait for a bounded time. Names in a list can only raise the total of
// their own process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "ring/base/mutex.h"

namespace host::broker {

// The result of reading one process's list of mappings.
struct Mapped {
  enum class End : std::uint8_t {
    Whole,
    TooLong,  // longer than that of any honest process: it may hide mappings
    TooSlow,  // the bytes read so far mean nothing
    Unread,   // `why`
  };
  End end = End::Whole;
  std::uint64_t bytes = 0;
  std::string why = {};
};

using MapsClock = std::chrono::steady_clock;
// `maps` has the format of /proc/PID/maps. Stops at its end, after 4 MiB, or at `until`.
Mapped managed_in(std::istream& maps, MapsClock::time_point until);
// Reads the list of a process of this machine; 0 bytes if it has ended.
Mapped managed_memory_of(pid_t process);

// Reads the lists of many processes, one after another, in a thread of its own. Only one thread may call it.
class ManagedMemory {
 public:
  using Read = std::function<Mapped(pid_t)>;
  explicit ManagedMemory(Read read = managed_memory_of);
  ~ManagedMemory();  // waits for the list being read
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;

  struct Held {
    std::optional<std::uint64_t> bytes;  // nothing: assume more than any process has
    std::string unread;                  // why it is unknown now; `bytes` is then the last known value
  };
  // Returns what each process holds. Blocks for `patience` at most, and then uses the last known values of those not
  // yet read.
  std::map<pid_t, Held> look(const std::set<pid_t>& processes, std::chrono::milliseconds patience);

  // After this many slow lists in a row the process counts as hiding memory.
  static constexpr int most_slow = 8;

 private:
  struct Known {
    Held held{0, ""};
    int slow = 0;
  };
  void run();
  void note(Known& known, const Mapped& mapped);

  const Read read_;
  ring::Mutex mutex_;
  std::condition_variable wanted_, done_;
  std::set<pid_t> left_ GUARDED_BY(mutex_);  // to be read
  std::map<pid_t, Known> known_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace host::broker
