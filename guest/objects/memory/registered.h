// Registered memory: a block of the arena is mapped under the program's own pages, which keep their addresses and
// contents. Program and GPU then use the same bytes (docs/design/025-registered-memory.md). This class is only the
// mechanism and knows no CUDA: the map of addresses (guest/objects/memory/addresses.h) decides which addresses a call
// may use.
//
// Registrations are disjoint ranges of bytes, but two registrations may share a page. A block consists of whole pages,
// so its first and last page also contain neighbouring bytes, for example of another heap allocation. A page becomes
// private memory again when the last registration that overlaps the page ends. The block is freed when its last
// registration ends.
//
// Invariant: a page is registered if it maps the bytes of its block. The kernel is asked each time, since the program
// may have unmapped the page. A block stays allocated while one of its pages cannot be restored. Any thread may call
// this class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "guest/objects/memory/arena.h"
#include "guest/objects/memory/mappings.h"
#include "guest/objects/memory/page_swap.h"
#include "ring/base/mutex.h"

namespace guest {

class Registered {
 public:
  // Maps [offset, offset + bytes) of the arena again, writable, at any address. Returns null if the mapping failed.
  using MapAgain = std::function<std::byte*(std::uint64_t offset, std::size_t bytes)>;
  // `helpers`: threads that help to copy each large registration.
  Registered(Arena& arena, MapAgain map_again, unsigned helpers)
      : arena_(arena), map_again_(std::move(map_again)), helpers_(helpers) {}

  // Absent: a page is not mapped, cannot be read or written, or belongs to a shared file. Unfit: a stack, a private
  // file, or shared memory. Apart: the range shares a page with a registration whose block cannot be extended over the
  // range. ThreadsRun: see guest/objects/memory/page_swap.h.
  enum class Outcome : std::uint8_t { Done, Already, Absent, Unfit, Apart, NoRoom, ThreadsRun, Failed };
  struct Added {
    Outcome outcome;
    std::byte* block_at = nullptr;  // the first byte in the arena
  };
  // Registers a range until `owner` ends. Preconditions: `bytes` is not 0, and start + bytes does not overflow.
  // `read_only`: read-only pages can be registered, too.
  Added add(std::uint64_t start, std::uint64_t bytes, bool read_only, const void* owner = nullptr);
  // Ends the registration that begins at `start`. Returns false if there is none. Preconditions: the GPU no longer uses
  // the registration.
  bool remove(std::uint64_t start);
  bool has_of(const void* owner);
  void remove_of(const void* owner);
  // Ends all registrations. Returns false if some pages stay in the arena.
  bool remove_all();

  // Called around a fork, so that the fork sees no half-done registration. Pages that also have unregistered bytes
  // become the child's own; parent and child share the pages that are registered as a whole.
  void before_fork() ACQUIRE(mutex_);
  void after_fork_in_parent() RELEASE(mutex_) { mutex_.unlock(); }
  void after_fork_in_child() RELEASE(mutex_);

 private:
  struct Registration {
    std::uint64_t bytes;
    const void* owner;
  };
  using Registrations = std::map<std::uint64_t, Registration>;
  struct Cover {
    std::uint64_t bytes = 0;  // bytes of whole pages
    std::byte* block = nullptr;
    std::uint32_t registrations = 0;
    bool lingers = false;  // without a registration, but a page could not be restored
  };
  using Covers = std::map<std::uint64_t, Cover>;
  struct Pages {
    std::uint64_t start, end;
  };

  Outcome judge(const Pages& pages, Covers::const_iterator cover, bool read_only, std::vector<Mapping>& pieces)
      REQUIRES(mutex_);
  Outcome reach(const Pages& pages, Covers::iterator& cover) REQUIRES(mutex_);
  Outcome put_in(const std::vector<Mapping>& pieces, const Covers::value_type& cover) REQUIRES(mutex_);
  bool put_back(const Pages& pages, const Covers::value_type& cover) REQUIRES(mutex_);
  void drop_if_unused(Covers::iterator cover) REQUIRES(mutex_);
  void sweep() REQUIRES(mutex_);
  bool end(Registrations::iterator registration) REQUIRES(mutex_);
  bool is_ours(const Mapping& piece, const Covers::value_type& cover) REQUIRES(mutex_);
  bool is_registered(std::uint64_t start, std::uint64_t bytes) const REQUIRES(mutex_);
  Pages own_pages(std::uint64_t start, std::uint64_t bytes) const REQUIRES(mutex_);
  Covers::iterator cover_of(std::uint64_t start) REQUIRES(mutex_) { return std::prev(covers_.upper_bound(start)); }

  Arena& arena_;
  const MapAgain map_again_;
  const unsigned helpers_;
  ring::Mutex mutex_;
  std::uint32_t lingering_ GUARDED_BY(mutex_) = 0;  // covers that linger
  Mapping arena_mapping_ GUARDED_BY(mutex_);        // the arena's first page; end is 0 until it was looked up
  Registrations registrations_ GUARDED_BY(mutex_);  // keyed by the first byte's address
  Covers covers_ GUARDED_BY(mutex_);                // keyed by the first page's address
  std::vector<Piece> partial_ GUARDED_BY(mutex_);   // for a forked child: pages with unregistered bytes
};

}  // namespace guest
