// A strict driver for tests: a host::Driver filled with functions that believe nobody. A handle, an address or an
// option that it never issued ends the process with a sentence, and every byte that it is lent is touched, so that
// AddressSanitizer sees a length that lies. What it does it does at once: a stream is behind only where a test says so.
//
// It knows one module, whatever text is loaded that starts as PTX does: kernels `fill` (a u64 address, a u32 count, a
// u32 value), `fault` and `nothing` (a name may go on after `fill`), the global `counter` of 16 bytes, and the variable
// `shared` of 24 bytes in managed memory. Other images it reads as far as their own headers say they reach, and refuses.
// What is found in a module or a library ends with it.
//
// One at a time; safe from any thread.
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

inline constexpr std::size_t device_memory = std::size_t{1} << 30;  // more cannot be allocated
inline constexpr int max_threads_per_block = 1024;
inline constexpr unsigned max_dynamic_shared = 48 << 10;  // of a launch

// For a test whose channels run at once. What is used while somebody else ends it is no mistake of the worker's: a
// native program that does so races as well. The use then throws Raced, which the test turns into the call's result;
// what had ended before the use began still ends the process.
struct Races {
  std::uint64_t (*now)();                                          // which record's work the calling thread does
  bool (*overlap)(std::uint64_t one_record, std::uint64_t other);  // whether neither was executed when the other began
  // As real drivers do: a name looked up again has the same handle, and a new module or kernel lies where an ended one
  // lay.
  bool handles_come_again;
};
struct Raced {};

// For a test that says which call of the program's the calling thread serves: the name of its entry point, "" where there is none.
// While a capture is open no other call may be made in a mode that is not RELAXED. Nothing: the test does not say.
extern thread_local std::optional<std::string_view> programs_call;

class Driver {
 public:
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const host::Driver& table() const { return table_; }

  // The next call of this name returns `result` and does nothing.
  void fail_next(const std::string& call, CUresult result);
  // How often an entry point was called; `name` is that of the plain form.
  std::uint64_t calls(const std::string& name);
  // Of those, by their _ptsz or _ptds form.
  std::uint64_t per_thread_calls(const std::string& name);
  void let_race(const Races& races);
  // While closed, cuMemsetD8Async and cuEventRecord do not return, as where a queue is full. `spins`: who is held there keeps
  // a processor busy, as in a driver that waits for a GPU.
  void close_gate(bool spins = false) {
    gate_spins_ = spins;
    gate_closed_ = true;
  }
  void open_gate() { gate_closed_ = false; }
  // As long as the GPU has work, cuCtxSynchronize does not return, and no stream is done, nor an event that was recorded
  // meanwhile.
  void keep_working(bool works) { works_ = works; }
  // As long as values are missing, a stream that is made to wait for one stands there, and cuCtxSynchronize does not return.
  void keep_values_back(bool missing);
  // From now on a range of addresses that is freed becomes ordinary memory of the process, with the bytes that it had,
  // until a reservation gets the range again. A copy of rows then does as a real driver does. It refuses an unknown address
  // that is said to be device memory. It takes an unknown address of a kind that is not said for memory of the process.
  void let_freed_ranges_stay();
  bool somebody_waits() const { return waiting_ != 0; }
  // Live objects of all kinds, and device allocations: what a session has left behind. Not counted is what a graph consists of, which
  // the driver makes without telling: nodes, graphs, and what keeps a function.
  std::size_t live_handles();
  // Graphs that only the program ends: no node holds them, and no open capture fills them.
  std::set<const void*> live_graphs();
  // The device's pool, which the driver makes when it is first used; null: it has not been.
  const void* own_pool();
  // Whether this is the address of a handle, live or destroyed: what must never be seen outside of the worker.
  bool issued(const void* address);
  std::size_t live_allocations();
  bool is_live(const void* handle);
  // Device memory that may be named: allocations and globals, as start and bytes.
  std::vector<std::pair<CUdeviceptr, std::size_t>> live_ranges();
  std::size_t registered_bytes();

 private:
  host::Driver table_;
  std::atomic<bool> gate_closed_{false}, gate_spins_{false}, works_{false}, values_missing_{false};
  std::atomic<int> waiting_{0};
  friend struct Entry;
};

}  // namespace fake
