// The state of the strict driver (tests/fake/driver.h), for the files that fill in its table: issued objects, and
// checks of arguments. An Entry holds the lock that guards the whole state.
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
  std::uint64_t by;  // the record that ended the handle
};

// The data that a driver keeps for a link: pointers to the caller's values and buffers, the buffers' sizes, and the
// link's image.
struct PendingLink {
  std::vector<CUjit_option> names;
  void** values = nullptr;
  std::uint64_t info_room = 0, error_room = 0;
  std::vector<std::byte> image;
};

// The binding of a texture or surface reference.
struct BoundReference {
  const void* array = nullptr;
  CUdeviceptr address = 0;
  Handle kind = Handle::Array;  // the kind of the array
  float bias = 0;
};

inline constexpr std::size_t pool_piece = std::size_t{32} << 20;  // the amount that a pool reserves at once
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
  std::map<const void*, const void*> owners;  // the owner with which a handle ends, if any
  std::map<CUdeviceptr, std::unique_ptr<std::byte[]>> memory;
  std::map<CUdeviceptr, std::size_t> ranges;                                    // device memory and globals
  std::map<const std::byte*, std::size_t> pinned;                               // registered memory
  std::map<const void*, std::string> kernels;                                   // functions and kernels, by handle
  std::map<std::tuple<const void*, const void*, std::string>, Global> globals;  // by owner, context (or null) and name
  std::map<std::string, CUresult> failures;
  std::map<std::string, std::uint64_t> calls, per_thread;
  std::map<const void*, std::uint64_t> recorded;  // events that have been recorded
  std::set<const void*> standing;                 // streams that wait for a missing value
  // Events behind such a wait, and events that were recorded while the GPU had work.
  std::set<const void*> not_passed, beside_work;
  std::vector<const void*> destroyed;  // kept, so that no later handle reuses the address
  std::size_t allocated = 0;
  CUresult sticky = CUDA_SUCCESS;
  std::optional<Races> races;
  std::map<const void*, std::vector<std::uint64_t>> ended_by;  // with races: the records that ended each handle
  std::map<const void*, Handle> places;                        // ended handles, for reuse by the same kind
  std::vector<EndedRange> ended_ranges;
  std::map<std::pair<const void*, std::string>, const void*> found;  // looked-up objects, by owner and name
  std::set<const void*> contexts;                                    // contexts that the session has created
  std::map<const void*, const void*> made_in;                        // the context of each handle
  std::map<CUdeviceptr, const void*> allocated_in;                   // the context of each allocation
  // The handles of texture and surface objects, by number.
  std::map<unsigned long long, const void*> numbers;
  std::map<const void*, PendingLink> links;     // by handle
  std::map<const void*, BoundReference> bound;  // by reference
  const void* default_pool = nullptr;
  std::map<const void*, PoolUse> pools;               // what pools hold
  std::map<CUdeviceptr, const void*> from_pool;       // the pool of each allocation that comes from a pool
  std::map<CUdeviceptr, std::size_t> reserved;        // ranges of cuMemAddressReserve
  bool freed_ranges_stay = false;                     // freed ranges become ordinary memory of the process
  std::map<CUdeviceptr, std::size_t> freed;           // freed ranges that became ordinary memory
  std::map<CUdeviceptr, std::uint64_t> mapped;        // the allocation that is mapped at each address
  std::map<std::uint64_t, std::size_t> physical;      // size of each allocation
  std::map<std::uint64_t, unsigned> physical_given;   // how often each allocation's handle was issued
  std::map<const void*, const void*> greens;          // green contexts, and the context of each
  std::map<const void*, std::thread::id> current_in;  // the thread in which each green context is current
  std::set<std::vector<std::byte>> resources;         // all issued resources
  std::set<const void*> descriptions;                 // descriptions of resources
  const void* secret = nullptr;                       // the address inside each resource
  std::shared_ptr<Graphs> graphs;
};
extern State* state;
extern Driver* the_driver;
extern int context_object;  // the primary context
extern thread_local const void *current, *below;

[[noreturn, gnu::format(printf, 1, 2)]] void die(const char* format, ...);

// Reads every byte. The sum prevents the compiler from removing the reads.
void touch(const void* at, std::size_t bytes);

bool is_green(const void* context);  // tests/fake/green.cc
// Makes the context current in the calling thread.
void note_current(const void* context);
// The context that owns memory and most objects made in `context`.
inline const void* home_of(const void* context) { return is_green(context) ? &context_object : context; }

// ---- handles and addresses -----------------------------------------------------------------------------------------

// If handles are reused, returns an ended handle of this kind; otherwise a new one.
std::uint64_t* place_for(Handle kind);

// The context of an object found in `owner`: the owner's own context, or the current context if the owner has none.
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

// The object of this name in `owner`. If handles are reused, this is the handle of the first lookup.
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
bool is_pinned(CUdeviceptr at, std::size_t bytes);  // true if all bytes are in one registration
void forgive_ended_range(CUdeviceptr at, std::size_t bytes);
void check_device(const char* call, CUdeviceptr at, std::size_t bytes);
void check_device_number(const char* call, CUdevice device);
void check_context(const char* call, const void* context);
void check_current(const char* call);
void end_what_lives_in(const char* call, const void* context);
CUresult allocate(CUdeviceptr* address, std::size_t bytes);
// Allocates from a pool, which reserves memory in pieces of 32 MiB.
CUresult allocate_in(const void* pool, CUdeviceptr* address, std::size_t bytes);
const void* pool_of(const char* call, CUdeviceptr address);  // null if the address comes from no pool
// Ends an allocation.
void give_back(const char* call, CUdeviceptr address);

// ---- captures (tests/fake/capture.cc) ------------------------------------------------------------------------------

// Handles work for a stream. Returns nullopt if the stream is not captured, and the caller does the work. Otherwise
// returns the call's result: the captured stream has a new node, or the NULL stream is forbidden during a capture of a
// blocking stream.
std::optional<CUresult> capture_work(CUstream stream, bool per_thread, const Work& work);
// For a call that never adds a node: a captured stream refuses the call, and its capture becomes invalid.
std::optional<CUresult> refuse_captured(CUstream stream, bool per_thread);
// Same for an event whose last record was captured.
std::optional<CUresult> refuse_captured(CUevent event);
std::optional<CUresult> capture_record(CUevent event, CUstream stream, bool per_thread);
std::optional<CUresult> capture_wait(CUstream stream, bool per_thread, CUevent event);
// Called at each function's entry: refuses calls that the calling thread's capture mode forbids, and checks calls on a
// whole context.
CUresult refuse_in_capture(const char* call);
// Called when a stream is destroyed, a context ends, or a handle ends.
void end_captured(const char* call, const void* stream);
void end_captures_in(const void* context);
void forget_in_captures(const void* handle);

// Used at each function's entry: counts the call, applies an injected error, and holds the lock until the function's
// end.
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

// Functions that only create or end a handle of a kind.
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
// Checks an attribute that a record has transmitted: the bytes behind those of its table line must be 0.
void demand_described(const char* call, const CUlaunchAttribute& attribute);
// Aborts if the driver would access memory outside the session.
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
