#include "tests/fake/state.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace fake {

State* state = nullptr;
Driver* the_driver = nullptr;
int context_object = 0;
thread_local const void *current = nullptr, *below = nullptr;

void die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::fputs("fake driver: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
  std::abort();
}

void touch(const void* at, std::size_t bytes) {
  static std::atomic<unsigned> sink;
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<const volatile unsigned char*>(at)[i];
  sink.fetch_add(sum, std::memory_order_relaxed);
}

// ---- handles and addresses; all under the state's lock -------------------------------------------------------------

// If handles are reused, returns an ended handle of this kind; otherwise a new one. Streams, events, texture references
// and parts of graphs are never reused: two concurrent destructions would otherwise end a new object, which no worker
// can detect.
bool is_of_graphs(Handle kind) {
  return kind == Handle::Graph || kind == Handle::GraphNode || kind == Handle::GraphExec || kind == Handle::UserObject;
}
std::uint64_t* place_for(Handle kind) {
  const bool comes_again = state->races && state->races->handles_come_again && kind != Handle::Stream &&
                           kind != Handle::Event && kind != Handle::TextureReference && !is_of_graphs(kind);
  for (const auto& [place, last] : state->places)
    if (comes_again && last == kind) {
      auto* again = static_cast<std::uint64_t*>(const_cast<void*>(place));
      std::erase(state->destroyed, place);
      state->places.erase(place);
      state->owners.erase(again);
      return again;
    }
  return new std::uint64_t[2]{};
}

// Throws if a concurrent record used the object that this record ended.
void forgive_race(std::uint64_t ended_by) {
  if (state->races->overlap(ended_by, state->races->now())) throw Raced();
}

void check(const char* call, Handle wanted, const void* handle) {
  const auto at = state->handles.find(handle);
  if (at == state->handles.end()) {
    for (const std::uint64_t record : state->ended_by[handle]) forgive_race(record);
    die("%s: handle %p was never issued or is destroyed", call, handle);
  }
  if (!api::accepts(wanted, at->second)) die("%s: handle %p is of kind %d", call, handle, static_cast<int>(at->second));
}

void check_stream(const char* call, CUstream stream) {
  if (reinterpret_cast<std::uint64_t>(stream) > 2) check(call, Handle::Stream, stream);
}

void end_range(CUdeviceptr start, std::size_t bytes) {
  state->ranges.erase(start);
  if (state->races) state->ended_ranges.push_back({start, bytes, state->races->now()});
}

template <class Of>
void forget_globals_if(Of is_of) {
  std::erase_if(state->globals, [&](const auto& entry) {
    if (!is_of(entry.first)) return false;
    end_range(reinterpret_cast<CUdeviceptr>(entry.second.memory.get()), entry.second.bytes);
    return true;
  });
}
void forget_globals(const void* owner) {
  forget_globals_if([owner](const auto& key) { return std::get<0>(key) == owner; });
}

void destroy(const char* call, Handle kind, const void* handle) {
  check(call, kind, handle);
  forget_in_captures(handle);
  forget_globals(handle);
  if (state->races) {
    state->ended_by[handle].push_back(state->races->now());
    state->places[handle] = state->handles[handle];
    std::erase_if(state->found, [&](const auto& f) { return f.first.first == handle || f.second == handle; });
  }
  state->handles.erase(handle);
  state->destroyed.push_back(handle);
  std::vector<const void*> owned;
  for (const auto& [other, owner] : state->owners)
    if (owner == handle && state->handles.count(other) != 0) owned.push_back(other);
  for (const void* other : owned)
    if (const auto at = state->handles.find(other); at != state->handles.end()) destroy(call, at->second, other);
}

// True if adjacent mappings cover the whole range.
bool is_mapped(CUdeviceptr at, std::size_t bytes) {
  auto piece = state->mapped.upper_bound(at);
  if (piece == state->mapped.begin()) return false;
  --piece;
  if (at - piece->first > state->ranges[piece->first]) return false;
  CUdeviceptr end = piece->first + state->ranges[piece->first];
  for (++piece; end < at + bytes && piece != state->mapped.end() && piece->first == end; ++piece)
    end += state->ranges[piece->first];
  return bytes <= end - at;
}

bool is_live(CUdeviceptr at, std::size_t bytes) {
  if (is_mapped(at, bytes)) return true;
  auto range = state->ranges.upper_bound(at);
  if (range != state->ranges.begin()) {
    --range;
    if (at - range->first <= range->second && bytes <= range->second - (at - range->first)) return true;
  }
  return is_pinned(at, bytes);
}

bool is_pinned(CUdeviceptr at, std::size_t bytes) {
  const auto* host = reinterpret_cast<const std::byte*>(at);
  for (const auto& [start, size] : state->pinned)
    if (host >= start && host <= start + size && bytes <= static_cast<std::size_t>(start + size - host)) return true;
  return false;
}

void forgive_ended_range(CUdeviceptr at, std::size_t bytes) {
  for (const EndedRange& range : state->ended_ranges)
    if (at <= range.start + range.bytes && range.start <= at + bytes) forgive_race(range.by);
}

void check_device(const char* call, CUdeviceptr at, std::size_t bytes) {
  // The driver copies and sets 0 bytes at any address, including null (see the golden lines "0 bytes, nulls").
  if ((at == 0 && bytes == 0) || is_live(at, bytes)) return;
  forgive_ended_range(at, bytes);
  die("%s: %zu bytes at %llx are no device memory", call, bytes, at);
}

void check_context(const char* call, const void* context) {
  if (context != &context_object && !state->contexts.contains(context))
    die("%s: context %p was never issued or is destroyed", call, context);
}

void check_current(const char* call) {
  if (current == nullptr) die("%s: no context is current in this thread", call);
  check_context(call, current);
}

// Ends the objects of a context.
void end_what_lives_in(const char* call, const void* context) {
  end_captures_in(context);
  std::vector<const void*> gone;
  for (const auto& [handle, kind] : state->handles)
    if (api::ends_with_context(kind) && state->made_in[handle] == context) gone.push_back(handle);
  for (const void* handle : gone)
    if (const auto at = state->handles.find(handle); at != state->handles.end()) destroy(call, at->second, handle);
  forget_globals_if([context](const auto& key) { return std::get<1>(key) == context; });
  std::erase_if(state->memory, [&](const auto& memory) {
    const CUdeviceptr start = memory.first;
    if (state->allocated_in[start] != context) return false;
    state->allocated -= state->ranges[start];
    end_range(start, state->ranges[start]);
    return true;
  });
}

void check_device_number(const char* call, CUdevice device) {
  if (device != 0) die("%s: there is no device %d", call, device);
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > device_memory - state->allocated) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = std::make_unique<std::byte[]>(bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory.get());
  state->ranges[*address] = bytes;
  state->memory[*address] = std::move(memory);
  state->allocated_in[*address] = home_of(current);
  state->allocated += bytes;
  return CUDA_SUCCESS;
}

CUresult allocate_in(const void* pool, CUdeviceptr* address, std::size_t bytes) {
  if (const CUresult r = allocate(address, bytes); r != CUDA_SUCCESS) return r;
  state->from_pool[*address] = pool;
  PoolUse& use = state->pools[pool];
  use.used += bytes;
  use.reserved = std::max(use.reserved, (use.used + pool_piece - 1) / pool_piece * pool_piece);
  return CUDA_SUCCESS;
}

const void* pool_of(const char* call, CUdeviceptr address) {
  check_device(call, address, 1);
  const auto at = state->from_pool.find(address);
  return at == state->from_pool.end() ? nullptr : at->second;
}

void give_back(const char* call, CUdeviceptr address) {
  const auto at = state->memory.find(address);
  if (at == state->memory.end()) {
    forgive_ended_range(address, 0);
    die("%s: %llx was not allocated", call, address);
  }
  if (const auto from = state->from_pool.find(address); from != state->from_pool.end()) {
    state->pools[from->second].used -= state->ranges[address];
    state->from_pool.erase(from);
  }
  state->allocated -= state->ranges[address];
  end_range(address, state->ranges[address]);
  state->memory.erase(at);
}

CUresult close(const char* name, Handle kind, const void* handle) {
  Entry entry(name);
  if (!entry.failed()) destroy(name, kind, handle);
  return entry.result;
}

}  // namespace fake
