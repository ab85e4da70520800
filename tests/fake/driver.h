// A strict driver for tests: a host::Driver filled with functions that believe nobody. A handle, an address or an
// option that it never issued ends the process with a sentence, and every byte that it is lent is touched, so that
// AddressSanitizer sees a length that lies. What it does it does at once: a stream is never behind.
//
// It knows one module, whatever text is loaded that starts as PTX does: kernels `fill` (a u64 address, a u32 count, a
// u32 value), `fault` and `nothing` (a name may go on after `fill`), and the global `counter` of 16 bytes. Other images
// it reads as far as their own headers say they reach, and refuses. What is found in a module or a library ends with
// it.
//
// One at a time; safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "host/driver/driver.h"

namespace fake {

inline constexpr std::size_t device_memory = std::size_t{1} << 30;  // more cannot be allocated
inline constexpr int max_threads_per_block = 1024;
inline constexpr unsigned max_dynamic_shared = 48 << 10;  // of a launch

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
  // While closed, cuMemsetD8Async does not return. `spins`: who is held there keeps a processor busy, as in a driver
  // that waits for a GPU.
  void close_gate(bool spins = false) {
    gate_spins_ = spins;
    gate_closed_ = true;
  }
  void open_gate() { gate_closed_ = false; }
  bool somebody_waits() const { return waiting_ != 0; }
  // Live objects of all kinds, and device allocations: what a session has left behind.
  std::size_t live_handles();
  // Whether this is the address of a handle, live or destroyed: what must never be seen outside of the worker.
  bool issued(const void* address);
  std::size_t live_allocations();
  std::size_t registered_bytes();

 private:
  host::Driver table_;
  std::atomic<bool> gate_closed_{false}, gate_spins_{false};
  std::atomic<int> waiting_{0};
  friend struct Entry;
};

}  // namespace fake
