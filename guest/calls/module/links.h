// The guest's state of a pending link: the program's buffers for the driver's report, and the images that the link has
// returned. Only link.cc uses this file.
//
// A driver keeps pointers to a link's option values and log buffers until the link's end. Any call may write to these
// values and buffers. The worker's driver has the worker's buffers, so each reply carries their contents, and the guest
// copies the contents to the program's buffers.
//
// Thread-safety: any thread. A link stays valid while a call uses it, even if another thread destroys it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "guest/calls/module/jit_options.h"
#include "ring/base/mutex.h"

namespace guest {

class Link {
 public:
  explicit Link(const JitOptions& options)
      : names_(options.names, options.names + options.count),
        asked_(options.values, options.values + options.count),
        values_(options.values) {}

  // Copies the report in a reply to the program's buffers.
  void take_report(ring::SharedReader& reply) {
    ring::MutexLock lock(mutex_);
    take({static_cast<unsigned>(names_.size()), names_.data(), values_}, asked_.data(), reply);
  }
  // Keeps an image until the link ends. Returns the kept image, which is the same object for the same bytes.
  const std::vector<char>& keep(std::vector<char> image);

 private:
  ring::Mutex mutex_;
  std::vector<CUjit_option> names_ GUARDED_BY(mutex_);
  std::vector<void*> asked_ GUARDED_BY(mutex_);  // the values that the program passed; the driver overwrites log sizes
  void** values_;                                // the program's array
  std::deque<std::vector<char>> images_ GUARDED_BY(mutex_);
};

void add_link(std::uint64_t id, std::shared_ptr<Link> link);
// Returns null if there is no link with this id.
std::shared_ptr<Link> find_link(std::uint64_t id);
void drop_link(std::uint64_t id);

}  // namespace guest
