// A strict driver for tests: a host::Driver that trusts no caller. A handle, address or option that it never issued
// ends the process with a message. The driver accesses every byte that it gets, so that AddressSanitizer detects a
// wrong length. Work completes at once, unless a test delays a stream.
//
// Any text that begins like PTX loads the same module: kernels `fill` (a u64 address, a u32 count, a u32 value; its
// name may be longer), `fault` and `nothing`, the global `counter` of 16 bytes, and the managed variable `shared` of 24
// bytes. The driver reads other images as far as their headers claim, and refuses them. Objects found in a module or
// library end with it.
//
// Only one driver may exist at a time; it is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host/driver/driver.h"

namespace fake {

inline constexpr std::size_t device_memory = std::size_t{1} << 30;  // allocations beyond this total fail
inline constexpr int max_threads_per_block = 1024;
inline constexpr unsigned max_dynamic_shared = 48 << 10;  // per launch

// For tests with concurrent channels. Using an object while another channel ends it is no mistake of the worker, since
// native programs can race, too. Such a use throws Raced, and the test turns the exception into the call's result. A
// use that begins after the object's end still ends the process.
struct Races {
  std::uint64_t (*now)();                                          // the record that the calling thread executes
  bool (*overlap)(std::uint64_t one_record, std::uint64_t other);  // whether the two records ran concurrently
  // Behaves as real drivers do: looking up a name again returns the same handle, and a new module or kernel may reuse
  // an ended one's address.
  bool handles_come_again;
};
struct Raced {};

// The program's entry point that the calling thread executes; "" for none, nullopt if the test does not set it. While a
// capture is open, any other call must run in mode RELAXED.
extern thread_local std::optional<std::string_view> programs_call;

class Driver {
 public:
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const host::Driver& table() const { return table_; }

  // Makes the next call of this name return `result` without an effect.
  void fail_next(const std::string& call, CUresult result);
  // The number of calls of an entry point, by the name of its plain form.
  std::uint64_t calls(const std::string& name);
  // The number of calls of an entry point in its _ptsz or _ptds form.
  std::uint64_t per_thread_calls(const std::string& name);
  void let_race(const Races& races);
  // While the gate is closed, cuMemsetD8Async and cuEventRecord block, as on a full queue. `spins`: blocked threads use
  // the processor, as in a driver that waits for a GPU.
  void close_gate(bool spins = false) {
    gate_spins_ = spins;
    gate_closed_ = true;
  }
  void open_gate() { gate_closed_ = false; }
  // While the GPU has work, cuCtxSynchronize blocks, no stream is complete, and no event recorded in this time is
  // complete.
  void keep_working(bool works) { works_ = works; }
  // While values are missing, a stream that waits for a value stays blocked, and so does cuCtxSynchronize.
  void keep_values_back(bool missing);
  // After this call a freed range of addresses becomes ordinary memory of the process, with its bytes, until a
  // reservation reuses the range. A copy of rows then behaves as in a real driver. It refuses an unknown address that
  // is declared as device memory, and treats an unknown address of undeclared type as memory of the process.
  void let_freed_ranges_stay();
  bool somebody_waits() const { return waiting_ != 0; }
  // The number of live objects of all kinds, and of device allocations, to find what a session has left behind.
  // Excludes the parts of graphs that the driver creates internally: nodes, graphs, and holders of functions.
  std::size_t live_handles();
  // Graphs that only the program can end: neither a node nor an open capture holds them.
  std::set<const void*> live_graphs();
  // The device's pool, which is created at its first use; null before.
  const void* own_pool();
  // True if this is the address of a handle, live or destroyed. The worker must never reveal such an address.
  bool issued(const void* address);
  std::size_t live_allocations();
  bool is_live(const void* handle);
  // Device memory that calls may name: allocations and globals, as start and size.
  std::vector<std::pair<CUdeviceptr, std::size_t>> live_ranges();
  std::size_t registered_bytes();

 private:
  host::Driver table_;
  std::atomic<bool> gate_closed_{false}, gate_spins_{false}, works_{false}, values_missing_{false};
  std::atomic<int> waiting_{0};
  friend struct Entry;
};

}  // namespace fake
