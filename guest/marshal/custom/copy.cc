// Copies between host and device. CUSTOM because the host's side is guest memory: pinned memory is named by its place
// in the arena, small pageable pieces travel in the record, large ones through staging chunks in a pipeline: while the
// GPU copies from one chunk, the next is filled.
//
// Semantics toward the caller are CUDA's: a synchronous copy is complete when it returns; an asynchronous one from
// pageable memory has taken the bytes when it returns; one to pageable memory is complete.
#include <array>
#include <cstring>

#include "guest/marshal/custom/custom.h"
#include "guest/marshal/exchange.h"
#include "guest/switches.h"
#include "ring/api/records.h"

namespace guest {
namespace {

// Up to here bytes travel in a record or reply: one cache-warm copy more is cheaper than a chunk's bookkeeping.
constexpr std::size_t inline_limit = 32 << 10;

enum class Direction : std::uint8_t { ToDevice, FromDevice };

struct Copy {
  Direction direction;
  CUdeviceptr device_at;
  std::byte* host;
  std::size_t bytes;
  CUstream stream;
  bool async;
  std::uint32_t device = 0;
  StreamRef ref;

  int call() const {
    if (direction == Direction::ToDevice) return async ? api::id_of::cuMemcpyHtoDAsync_v2 : api::id_of::cuMemcpyHtoD_v2;
    return async ? api::id_of::cuMemcpyDtoHAsync_v2 : api::id_of::cuMemcpyDtoH_v2;
  }
  api::CopyRecord record(std::uint64_t arena, std::size_t offset, std::size_t length) const {
    return {.device = device_at + offset,
            .arena = arena,
            .bytes = length,
            .stream = reinterpret_cast<std::uint64_t>(stream)};
  }
};

// Pinned memory: the driver copies from or to the very pages.
CUresult copy_pinned(const Copy& c, std::uint64_t arena) {
  const api::Way way = c.async ? api::Way::Posted : api::Way::Waited;
  const Sent sent = send_record(c.call(), way, c.device, c.record(arena, 0, c.bytes), {}, Earlier::Told);
  if (c.async && sent.use.position != 0) remember(*c.ref.object, sent.use);
  session()->staged_bytes.fetch_add(c.bytes, std::memory_order_relaxed);
  return sent.result;
}

CUresult copy_inline(const Copy& c) {
  if (c.direction == Direction::ToDevice) {
    const Part part{c.host, c.bytes};
    const api::Way way = c.async ? api::Way::Posted : api::Way::Waited;
    const Sent sent =
        send_record(c.call(), way, c.device, c.record(ring::absent, 0, c.bytes), {&part, 1}, Earlier::Told);
    if (c.async && sent.use.position != 0) remember(*c.ref.object, sent.use);
    return sent.result;
  }
  return send_record(
             c.call(), api::Way::Waited, c.device, c.record(ring::absent, 0, c.bytes), {},
             [&](CUresult result, ring::Reader& r) {
               if (result != CUDA_SUCCESS) return;
               if (const std::byte* at = r.take(c.bytes)) std::memcpy(c.host, at, c.bytes);
             },
             Earlier::Told)
      .result;
}

CUresult synchronize(const Copy& c) { return Stub<api::id_of::cuStreamSynchronize>::call(c.stream); }

// The chunks of one staged copy, each with the record that last used it.
class Pipeline {
 public:
  explicit Pipeline(const Copy& copy) : copy_(copy), depth_(switches().copy_pipeline ? max_depth : 1) {}
  ~Pipeline() {
    for (std::size_t i = 0; i < held_; ++i) session()->arena->give_back(chunks_[i]);
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  CUresult run() {
    while (done_ < copy_.bytes) {
      grow();
      const std::size_t turn = next_++ % held_;
      if (const CUresult r = empty(turn); r != CUDA_SUCCESS) return r;
      if (const CUresult r = fill(turn); r != CUDA_SUCCESS) return r;
    }
    for (std::size_t i = 0; i < held_; ++i)
      if (const CUresult r = empty((next_ + i) % held_); r != CUDA_SUCCESS) return r;
    return this_channel_error();
  }

 private:
  static constexpr std::size_t max_depth = 4;
  struct Piece {
    std::size_t offset = 0, length = 0;
  };

  // Takes one more chunk while the pipeline may still deepen.
  void grow() {
    if (next_ != held_ || held_ == depth_) return;
    if (const auto chunk = session()->arena->borrow(held_ == 0)) chunks_[held_++] = *chunk;
  }

  // Waits until the GPU is through with a chunk; takes its bytes out, if it was filled by the GPU.
  CUresult empty(std::size_t turn) {
    Arena::Chunk& chunk = chunks_[turn];
    if (chunk.last == 0) return CUDA_SUCCESS;
    const Use use = Use::of(chunk.last);
    if (!session()->channel(use.channel).await_executed(use.position)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    chunk.last = 0;
    if (copy_.async)  // the record is executed when the copy is queued: the stream must get there
      if (const CUresult r = synchronize(copy_); r != CUDA_SUCCESS) return r;
    Piece& piece = pieces_[turn];
    if (copy_.direction == Direction::FromDevice && piece.length != 0 && this_channel_error() == CUDA_SUCCESS)
      std::memcpy(copy_.host + piece.offset, chunk.at, piece.length);
    piece = {};
    return this_channel_error();
  }

  CUresult fill(std::size_t turn) {
    Arena::Chunk& chunk = chunks_[turn];
    const std::size_t length = std::min(Arena::chunk_bytes, copy_.bytes - done_);
    if (copy_.direction == Direction::ToDevice) std::memcpy(chunk.at, copy_.host + done_, length);
    const api::CopyRecord record = copy_.record(session()->arena->offset(chunk.at), done_, length);
    const Sent sent = send_record(copy_.call(), api::Way::Posted, copy_.device, record);
    if (sent.use.position == 0) return sent.result;
    chunk.last = sent.use.packed();
    if (copy_.async) remember(*copy_.ref.object, sent.use);
    pieces_[turn] = {done_, length};
    done_ += length;
    session()->staged_bytes.fetch_add(length, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }

  // A chunk's copy was posted, so its failure is a deferred one: sticky here, so that no later chunk hides it.
  CUresult this_channel_error() {
    if (error_ == CUDA_SUCCESS) error_ = session()->fault();
    if (error_ == CUDA_SUCCESS) {
      Channel& channel = this_channel();
      std::lock_guard lock(channel.mutex());
      error_ = channel.take_deferred();
    }
    return error_;
  }

  const Copy& copy_;
  const std::size_t depth_;
  std::array<Arena::Chunk, max_depth> chunks_{};
  std::array<Piece, max_depth> pieces_{};
  std::size_t held_ = 0, next_ = 0, done_ = 0;
  CUresult error_ = CUDA_SUCCESS;
};

CUresult copy(Copy c) {
  if (const CUresult r = enter(c.device); r != CUDA_SUCCESS) return r;
  c.ref = resolve_stream(c.stream, c.device);
  if (c.ref.object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (c.bytes == 0) return CUDA_SUCCESS;
  if (c.host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Session& s = *session();
  if (!s.allocations.contains(c.device_at, c.bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!wait_for_stream(c.ref, c.device, this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (const auto arena = s.arena->offset_of(c.host, c.bytes)) return copy_pinned(c, *arena);
  const bool deferred_reply = c.async && c.direction == Direction::FromDevice;  // the reply would come before the bytes
  if (c.bytes <= inline_limit && !deferred_reply) return copy_inline(c);
  return Pipeline(c).run();
}

std::byte* writable(const void* host) { return static_cast<std::byte*>(const_cast<void*>(host)); }

}  // namespace

CUresult custom::cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy({.direction = Direction::ToDevice,
               .device_at = to,
               .host = writable(from),
               .bytes = bytes,
               .stream = nullptr,
               .async = false,
               .device = 0,
               .ref = {}});
}
CUresult custom::cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy({.direction = Direction::FromDevice,
               .device_at = from,
               .host = writable(to),
               .bytes = bytes,
               .stream = nullptr,
               .async = false,
               .device = 0,
               .ref = {}});
}
CUresult custom::cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copy({.direction = Direction::ToDevice,
               .device_at = to,
               .host = writable(from),
               .bytes = bytes,
               .stream = stream,
               .async = true,
               .device = 0,
               .ref = {}});
}
CUresult custom::cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy({.direction = Direction::FromDevice,
               .device_at = from,
               .host = writable(to),
               .bytes = bytes,
               .stream = stream,
               .async = true,
               .device = 0,
               .ref = {}});
}

}  // namespace guest
