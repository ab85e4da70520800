// The inside of the strict driver (tests/fake/driver.h), for the files that fill its table: what it has given out, and
// the checks of what it is given. Everything here is under the state's lock, which an Entry holds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "ring/api/types.h"
#include "tests/fake/driver.h"

namespace fake {

using api::Handle;

struct EndedRange {
  CUdeviceptr start;
  std::size_t bytes;
  std::uint64_t by;  // which record
};

// What a driver keeps of a link: pointers to the caller's values and buffers, the rooms that these had, and its image.
struct PendingLink {
  std::vector<CUjit_option> names;
  void** values = nullptr;
  std::uint64_t info_room = 0, error_room = 0;
  std::vector<std::byte> image;
};

// What is set of a texture or surface reference.
struct BoundReference {
  const void* array = nullptr;
  CUdeviceptr address = 0;
  Handle kind = Handle::Array;  // of the array
  float bias = 0;
};

inline constexpr std::size_t pool_piece = std::size_t{32} << 20;  // what a pool reserves at once
struct PoolUse {
  std::size_t used = 0, reserved = 0;
};

struct Global {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes = 0;
  bool managed = false;
};

struct Graphs;  // tests/fake/graph.h
struct Work;

struct State {
  std::mutex mutex;
  std::map<const void*, Handle> handles;
  std::map<const void*, const void*> owners;  // what a handle ends with, where it is not its own
  std::map<CUdeviceptr, std::unique_ptr<std::byte[]>> memory;
  std::map<CUdeviceptr, std::size_t> ranges;                                    // device memory and globals
  std::map<const std::byte*, std::size_t> pinned;                               // what is registered
  std::map<const void*, std::string> kernels;                                   // functions and kernels, by handle
  std::map<std::tuple<const void*, const void*, std::string>, Global> globals;  // by owner, context (or null) and name
  std::map<std::string, CUresult> failures;
  std::map<std::string, std::uint64_t> calls, per_thread;
  std::map<const void*, std::uint64_t> recorded;  // events that have been recorded
  std::set<const void*> standing;                 // streams that wait for a value that is missing
  std::set<const void*> not_passed, beside_work;  // events behind such a wait, and those that were recorded beside work
  std::vector<const void*> destroyed;             // kept, so that no later handle has the same address
  std::size_t allocated = 0;
  CUresult sticky = CUDA_SUCCESS;
  std::optional<Races> races;
  std::map<const void*, std::vector<std::uint64_t>> ended_by;  // where races are let: the records, by handle
  std::map<const void*, Handle> places;                        // of ended handles, for new ones of that kind
  std::vector<EndedRange> ended_ranges;
  std::map<std::pair<const void*, std::string>, const void*> found;  // what has been looked up, by owner and name
  std::set<const void*> contexts;                                    // created ones
  std::map<const void*, const void*> made_in;                        // the context of each handle
  std::map<CUdeviceptr, const void*> allocated_in;                   // and of memory
  std::map<unsigned long long, const void*> numbers;                 // of texture and surface objects: their handles
  std::map<const void*, PendingLink> links;                          // by handle
  std::map<const void*, BoundReference> bound;                       // by reference
  const void* default_pool = nullptr;
  std::map<const void*, PoolUse> pools;               // what pools hold
  std::map<CUdeviceptr, const void*> from_pool;       // of each allocation from one
  std::map<CUdeviceptr, std::size_t> reserved;        // by cuMemAddressReserve
  bool freed_ranges_stay = false;                     // as ordinary memory of the process
  std::map<CUdeviceptr, std::size_t> freed;           // such ranges
  std::map<CUdeviceptr, std::uint64_t> mapped;        // which allocation lies there
  std::map<std::uint64_t, std::size_t> physical;      // bytes of each allocation
  std::map<std::uint64_t, unsigned> physical_given;   // how often its handle was given
  std::map<const void*, const void*> greens;          // green contexts, and each as a context
  std::map<const void*, std::thread::id> current_in;  // which thread has a green one as a context
  std::set<std::vector<std::byte>> resources;         // all that were given
  std::set<const void*> descriptions;                 // of resources
  const void* secret = nullptr;                       // an address in each resource
  std::shared_ptr<Graphs> graphs;
};
extern State* state;
extern Driver* the_driver;
extern int context_object;  // the primary context
extern thread_local const void *current, *below;

[[noreturn, gnu::format(printf, 1, 2)]] void die(const char* format, ...);

// Reads every byte; the sum keeps the compiler from leaving it out.
void touch(const void* at, std::size_t bytes);

bool is_green(const void* context);  // tests/fake/green.cc
// A context is current in the calling thread from now on.
void note_current(const void* context);
// Whose the memory and most objects are that are made in a context.
inline const void* home_of(const void* context) { return is_green(context) ? &context_object : context; }

// ---- handles and addresses -----------------------------------------------------------------------------------------

// The place of an ended handle of this kind, where such come again; else a new one.
std::uint64_t* place_for(Handle kind);

// The context of what is found in an owner: the owner's, if that is an object of a context. Else the current one, as of what
// has no owner.
inline const void* context_of(const void* owner) {
  const auto found = state->handles.find(owner);
  const bool has_one = found != state->handles.end() && api::ends_with_context(found->second);
  return has_one ? state->made_in.at(owner) : home_of(current);
}

template <class T>
T issue(Handle kind, const void* owner = nullptr) {
  auto* handle = place_for(kind);
  state->handles[handle] = kind;
  state->made_in[handle] = api::ends_with_green_context(kind) ? current : context_of(owner);
  if (owner != nullptr) state->owners[handle] = owner;
  return reinterpret_cast<T>(handle);
}

// What an owner has under a name: the handle that it has had since it was looked up first, where handles come again.
template <class T>
T issue_once(Handle kind, const void* owner, const std::string& name) {
  if (!state->races || !state->races->handles_come_again) return issue<T>(kind, owner);
  const void*& known = state->found[{owner, name}];
  if (known == nullptr) known = issue<T>(kind, owner);
  return static_cast<T>(const_cast<void*>(known));
}

void forgive_race(std::uint64_t ended_by);
void check(const char* call, Handle wanted, const void* handle);
void check_stream(const char* call, CUstream stream);
void destroy(const char* call, Handle kind, const void* handle);
void end_range(CUdeviceptr start, std::size_t bytes);
void forget_globals(const void* owner);
bool is_live(CUdeviceptr at, std::size_t bytes);
bool is_pinned(CUdeviceptr at, std::size_t bytes);  // in one registration
void forgive_ended_range(CUdeviceptr at, std::size_t bytes);
void check_device(const char* call, CUdeviceptr at, std::size_t bytes);
void check_device_number(const char* call, CUdevice device);
void check_context(const char* call, const void* context);
void check_current(const char* call);
void end_what_lives_in(const char* call, const void* context);
CUresult allocate(CUdeviceptr* address, std::size_t bytes);
// Of an allocation from a pool, which reserves memory in pieces of 32 MiB.
CUresult allocate_in(const void* pool, CUdeviceptr* address, std::size_t bytes);
const void* pool_of(const char* call, CUdeviceptr address);  // null: from none
// The end of an allocation.
void give_back(const char* call, CUdeviceptr address);

// ---- captures (tests/fake/capture.cc) ------------------------------------------------------------------------------

// What becomes of work for a stream. Nothing: the caller is to do it, for the stream is not captured. Else what the call returns: a
// captured stream has got a node, or the NULL stream may not be used while a stream that waits for it is captured.
std::optional<CUresult> capture_work(CUstream stream, bool per_thread, const Work& work);
// The same of a call that never adds a node: a captured stream refuses it, and its capture is invalid from then on.
std::optional<CUresult> refuse_captured(CUstream stream, bool per_thread);
// The same of an event that was last recorded in a capture.
std::optional<CUresult> refuse_captured(CUevent event);
std::optional<CUresult> capture_record(CUevent event, CUstream stream, bool per_thread);
std::optional<CUresult> capture_wait(CUstream stream, bool per_thread, CUevent event);
// On the way into every function: what the calling thread's capture mode refuses, and what concerns a whole context.
CUresult refuse_in_capture(const char* call);
// A stream is destroyed, a context ends, a handle ends.
void end_captured(const char* call, const void* stream);
void end_captures_in(const void* context);
void forget_in_captures(const void* handle);

// On the way into every function: counts, looks for an error that the test has ordered, holds the lock until the end.
struct Entry {
  Entry(const char* name, bool per_thread = false, bool needs_context = true) : lock(state->mutex) {
    ++state->calls[name];
    if (per_thread) ++state->per_thread[name];
    if (needs_context) check_current(name);
    if (const auto at = state->failures.find(name); at != state->failures.end()) {
      result = at->second;
      state->failures.erase(at);
    } else if (needs_context) {
      result = state->sticky;
    }
    if (result == CUDA_SUCCESS) result = refuse_in_capture(name);
  }
  bool failed() const { return result != CUDA_SUCCESS; }
  static void wait_at_gate() {
    ++the_driver->waiting_;
    while (the_driver->gate_closed_)
      if (!the_driver->gate_spins_) std::this_thread::sleep_for(std::chrono::microseconds(200));
    --the_driver->waiting_;
  }

  static bool is_working() { return the_driver->works_; }
  static bool are_values_missing() { return the_driver->values_missing_; }
  static void wait_for_work() {
    const auto stands = [] {
      const std::lock_guard lock(state->mutex);
      return !state->standing.empty();
    };
    while (is_working() || stands()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

  std::unique_lock<std::mutex> lock;
  CUresult result = CUDA_SUCCESS;
};

// Functions that make or end a handle of a kind, and do nothing else.
template <class T>
CUresult create(const char* name, T* handle, Handle kind) {
  Entry entry(name);
  if (!entry.failed()) *handle = issue<T>(kind);
  return entry.result;
}
CUresult close(const char* name, Handle kind, const void* handle);

#define ENTER(name)              \
  Entry entry(name, per_thread); \
  if (entry.failed()) return entry.result

// ---- kernels, and copies of rows (tests/fake/driver.cc) ------------------------------------------------------------

struct ParameterPlace {
  std::size_t offset, bytes;
};
std::vector<ParameterPlace> parameters_of(const void* function);
// An attribute that crosses, and nothing but zeros behind what its line describes.
void demand_described(const char* call, const CUlaunchAttribute& attribute);
// Dies where the driver would read or write memory that is not the session's.
CUresult judge_copy(const char* call, const CUDA_MEMCPY3D& copy);

// ---- JIT options ---------------------------------------------------------------------------------------------------

std::uint64_t option(CUjit_option name, unsigned count, const CUjit_option* names, void** values);
void write_log(CUjit_option buffer, CUjit_option size, unsigned count, const CUjit_option* names, void** values);

// ---- the table, by noun --------------------------------------------------------------------------------------------

void fill_arrays(host::Driver& t);          // tests/fake/texture.cc
void fill_textures(host::Driver& t);        // tests/fake/texture.cc
void fill_references(host::Driver& t);      // tests/fake/reference.cc
void fill_links(host::Driver& t);           // tests/fake/link.cc
void fill_pools(host::Driver& t);           // tests/fake/pool.cc
void fill_virtual_memory(host::Driver& t);  // tests/fake/virtual.cc
void fill_green_contexts(host::Driver& t);  // tests/fake/green.cc
void fill_graphs(host::Driver& t);          // tests/fake/graph.cc
void fill_graph_nodes(host::Driver& t);     // tests/fake/graph_nodes.cc
void fill_captures(host::Driver& t);        // tests/fake/capture.cc

}  // namespace fake
