// The pipeline cuts a copy into blocks, which use the chunks in rotation. For a copy to the device, it copies each
// block into its chunk and then posts the block's record. For a copy from the device, it posts the record first and
// copies the chunk out afterwards. The copying threads work `lag_` blocks ahead of the caller's thread, so that all
// threads stay busy while the caller waits for one block.
#include "guest/calls/copy/staged_copy.h"

#include <algorithm>
#include <array>

#include "guest/base/switches.h"
#include "guest/calls/copy/chunk.h"
#include "guest/marshal/custom.h"
#include "guest/objects/copy/copiers.h"
#include "guest/objects/copy/streaming_copy.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

class Pipeline {
 public:
  explicit Pipeline(const Copy& copy);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  CUresult run() { return copy_.direction == Direction::ToDevice ? to_device() : from_device(); }

 private:
  struct Buffer {
    Arena::Chunk chunk;
    Copiers::Job job;
  };

  CUresult to_device();
  CUresult from_device();
  void move(Buffer& buffer, void* to, const void* from, std::size_t bytes, bool streamed) const;
  CUresult post_filled();
  CUresult post(std::size_t piece);
  CUresult start_emptying();
  CUresult await_posted(Buffer& buffer);
  CUresult error();

  Buffer& buffer_of(std::size_t piece) { return buffers_[piece % held_]; }
  std::size_t offset_of(std::size_t piece) const { return piece * piece_bytes_; }
  std::size_t length_of(std::size_t piece) const { return std::min(piece_bytes_, copy_.bytes - offset_of(piece)); }
  std::byte* host_of(std::size_t piece) const { return copy_.host + offset_of(piece); }

  const Copy& copy_;
  const std::size_t piece_bytes_, pieces_;
  std::array<Buffer, Arena::chunk_count> buffers_;
  std::size_t held_ = 0, lag_ = 0;
  std::size_t posted_ = 0;    // blocks whose record has been sent
  std::size_t emptying_ = 0;  // blocks that the copying threads have been asked to copy out
  CUresult error_ = CUDA_SUCCESS;
};

// Bytes. A smaller copy is almost complete before a sleeping thread has woken up.
constexpr std::size_t worth_threads = 1 << 20;

// Cuts a copy of a few chunks into smaller blocks, so that the copies of its blocks overlap. A block below 128 KiB
// costs more than the overlap saves.
std::size_t piece_size(std::size_t bytes) {
  constexpr std::size_t least = 128 << 10;
  if (!switches().copy_pipeline) return Arena::chunk_bytes;
  return std::clamp((bytes / Arena::chunk_count + least - 1) / least * least, least, Arena::chunk_bytes);
}

Pipeline::Pipeline(const Copy& copy)
    : copy_(copy), piece_bytes_(piece_size(copy.bytes)), pieces_((copy.bytes + piece_bytes_ - 1) / piece_bytes_) {
  const std::size_t depth = switches().copy_pipeline ? std::min<std::size_t>(pieces_, Arena::chunk_count) : 1;
  while (held_ < depth) {
    const auto chunk = session()->memory.arena->borrow(held_ == 0);
    if (!chunk) break;
    buffers_[held_++].chunk = *chunk;
  }
  if (copy.bytes >= worth_threads) lag_ = std::min<std::size_t>(copiers().threads(), held_ - 1);
}

Pipeline::~Pipeline() {
  for (std::size_t i = 0; i < held_; ++i) {
    copiers().finish(buffers_[i].job);
    session()->memory.arena->give_back(buffers_[i].chunk);
  }
}

// The copying threads make the copy if they work ahead; otherwise the calling thread does.
void Pipeline::move(Buffer& buffer, void* to, const void* from, std::size_t bytes, bool streamed) const {
  if (lag_ > 0)
    copiers().start(buffer.job, to, from, bytes, streamed);
  else
    copy_bytes(to, from, bytes, streamed);
}

CUresult Pipeline::to_device() {
  for (std::size_t piece = 0; piece < pieces_; ++piece) {
    Buffer& buffer = buffer_of(piece);
    if (const CUresult r = await_posted(buffer); r != CUDA_SUCCESS) return r;
    move(buffer, buffer.chunk.at, host_of(piece), length_of(piece), switches().copy_streamed);
    if (piece >= lag_)
      if (const CUresult r = post_filled(); r != CUDA_SUCCESS) return r;
  }
  while (posted_ < pieces_)
    if (const CUresult r = post_filled(); r != CUDA_SUCCESS) return r;
  for (std::size_t i = 0; i < held_; ++i)
    if (const CUresult r = await_posted(buffer_of(posted_ + i)); r != CUDA_SUCCESS) return r;
  return error();
}

CUresult Pipeline::post_filled() {
  copiers().finish(buffer_of(posted_).job);
  return post(posted_);
}

CUresult Pipeline::from_device() {
  for (std::size_t piece = 0; piece < pieces_; ++piece) {
    Buffer& buffer = buffer_of(piece);
    if (piece >= held_) {  // the chunk still contains an earlier block, which must be copied out first
      while (emptying_ < std::min(piece - held_ + 1 + lag_, piece))
        if (const CUresult r = start_emptying(); r != CUDA_SUCCESS) return r;
      copiers().finish(buffer.job);
    } else if (const CUresult r = await_posted(buffer); r != CUDA_SUCCESS) {  // an earlier copy may still use the chunk
      return r;
    }
    if (const CUresult r = post(piece); r != CUDA_SUCCESS) return r;
  }
  while (emptying_ < pieces_)
    if (const CUresult r = start_emptying(); r != CUDA_SUCCESS) return r;
  return error();  // the destructor waits for the threads
}

CUresult Pipeline::start_emptying() {
  Buffer& buffer = buffer_of(emptying_);
  if (const CUresult r = await_posted(buffer); r != CUDA_SUCCESS) return r;
  if (const CUresult r = error(); r != CUDA_SUCCESS) return r;  // after an error nothing was copied into the chunk
  move(buffer, host_of(emptying_), buffer.chunk.at, length_of(emptying_), false);
  ++emptying_;
  return CUDA_SUCCESS;
}

CUresult Pipeline::post(std::size_t piece) {
  Arena::Chunk& chunk = buffer_of(piece).chunk;
  api::CopyRecord record = copy_.record(session()->memory.arena->offset(chunk.at), offset_of(piece), length_of(piece));
  record.then_wait = copy_.async ? 1 : 0;
  const Sent sent =
      cross({.call = copy_.call(), .context = *copy_.context, .stream = &copy_.ref, .way = api::Way::Posted}, record);
  if (sent.use.position == 0) return sent.result;
  chunk.last = sent.use.packed();
  session()->memory.staged_bytes.fetch_add(length_of(piece), std::memory_order_relaxed);
  ++posted_;
  return CUDA_SUCCESS;
}

// Waits until the GPU no longer uses a chunk. The worker executes a block's record only when the block's copy is
// complete.
CUresult Pipeline::await_posted(Buffer& buffer) { return await_chunk(buffer.chunk); }

// The error of a posted record arrives later. It is kept here, so that no later block hides it.
CUresult Pipeline::error() {
  if (error_ == CUDA_SUCCESS) error_ = session()->slot().fault();
  if (error_ == CUDA_SUCCESS) {
    Channel& channel = this_channel();
    const ChannelLock lock(channel.mutex());
    error_ = channel.take_deferred();
  }
  return error_;
}

}  // namespace

int Copy::call() const {
  if (direction == Direction::ToDevice) return async ? api::id_of::cuMemcpyHtoDAsync_v2 : api::id_of::cuMemcpyHtoD_v2;
  return async ? api::id_of::cuMemcpyDtoHAsync_v2 : api::id_of::cuMemcpyDtoH_v2;
}

CUresult copy_staged(const Copy& copy) {
  const CUresult result = Pipeline(copy).run();
  if (result != CUDA_SUCCESS || this_channel().read_is_good()) return result;
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace guest
