// A large copy between pageable memory and the device, through staging chunks of the arena in a pipeline: while the GPU
// copies from or to some chunks, others are filled or emptied by several threads (guest/objects/copiers.h).
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
  // The piece [offset, offset + length) of it, its host side at `arena`.
  api::CopyRecord record(std::uint64_t arena, std::size_t offset, std::size_t length) const {
    return {.device = device_at + offset,
            .arena = arena,
            .bytes = length,
            .stream = reinterpret_cast<std::uint64_t>(stream)};
  }
};

// Returns when the copy is complete, also an asynchronous one: nobody would move the rest of the bytes later.
// Preconditions: its addresses are checked, and what it must not overtake has been waited for.
CUresult copy_staged(const Copy& copy);

}  // namespace guest
