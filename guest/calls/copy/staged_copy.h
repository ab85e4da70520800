// A large copy between pageable memory and the device, through staging chunks of the arena in a pipeline. While the GPU
// uses some chunks, several threads fill or empty others (guest/objects/copy/copiers.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest/marshal/order.h"
#include "ring/api/cuda.h"
#include "ring/api/records.h"

namespace guest {

enum class Direction : std::uint8_t { ToDevice, FromDevice };

struct Copy {
  Direction direction;
  CUdeviceptr device_at;
  std::byte* host;
  std::size_t bytes;
  CUstream stream;
  bool async;
  Context* context = nullptr;
  StreamRef ref;

  int call() const;
  // Returns the record for the block [offset, offset + length). `arena`: the offset of the block's host side in the
  // arena.
  api::CopyRecord record(std::uint64_t arena, std::size_t offset, std::size_t length) const {
    return {.device = device_at + offset,
            .arena = arena,
            .bytes = length,
            .stream = reinterpret_cast<std::uint64_t>(stream)};
  }
};

// Returns when the copy is complete. An asynchronous copy completes here, too, since no thread would move the remaining
// bytes later. Preconditions: the caller has checked the addresses, and has waited for the calls that the copy must not
// overtake.
CUresult copy_staged(const Copy& copy);

}  // namespace guest
