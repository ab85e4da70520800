// The services of the guest's kernel module to a process, besides mapping the region (ring/layout/module_c.h).
//
// The module claims a slot and gives the slot back, since only the kernel can write the directory. Threads that wait
// for the slot's interrupt sleep in the module. A process has one Module, which belongs to the process's Region. Any
// thread may call a Module. Times are in nanoseconds; offsets are bytes from the slot's start.
//
// ```cpp
// std::uint32_t slot_of(guest::Module& module, const char* program) {
//   const std::optional<guest::Module::Claim> claim = module.claim(program);
//   if (!claim) return ring::max_slots;  // none is Ready, or the device has gone
//   return claim->slot;                  // held until release(), or until the process ends
// }
// ```
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ring/layout/layout.h"

namespace guest {

class Region;

class Module {
 public:
  virtual ~Module() = default;

  struct Claim {
    std::uint32_t slot;
    ring::SlotWord word;
  };
  // Claims a Ready slot without waiting. Returns nothing if no slot is Ready, or if the device has gone. If no slot is
  // Ready, the module reports to the broker that one is wanted.
  virtual std::optional<Claim> claim(const char* program) = 0;
  // Gives the slot back and ends all mappings of the slot: they show zeros, or raise SIGBUS (ring/layout/module_c.h).
  virtual void release() = 0;

  // Returns whether the interrupt of this slot's worker wakes threads that sleep in the module. The worker raises
  // vector slot % guest_vectors.
  virtual bool wakes(std::uint32_t slot, std::uint32_t guest_vectors) const = 0;
  // Sleeps while the word at `offset` of the own slot contains `expected`, for at most `nanoseconds`. Ended: look
  // again. Gone: the process has lost the slot and must not touch it. Refused: no thread can sleep in this module.
  enum class Slept : std::uint8_t { Ended, Gone, Refused };
  virtual Slept sleep(std::uint64_t offset, std::uint32_t expected, std::uint64_t nanoseconds) = 0;
};

// The kernel's ioctl(2), or a test's module. The parameters are a request, and the request's argument as the kernel
// gets it.
using Ioctl = std::function<int(int fd, unsigned long request, std::uintptr_t argument)>;
int ioctl_of_kernel(int fd, unsigned long request, std::uintptr_t argument);

// Opens the region of the first usable node ivgpuN in `nodes` ("/dev"). Returns null if none is usable. `why` then is
// "" if there is no node, and sysfs may still have the region; otherwise one sentence with the remedy.
std::unique_ptr<Region> open_module(const char* nodes, std::string& why, Ioctl ioctl = ioctl_of_kernel);

}  // namespace guest
