// Sends the image of a load or link to the worker, in the record or through the arena.
#pragma once

#include <vector>

#include "guest/base/log.h"
#include "guest/calls/module/image.h"
#include "guest/calls/module/jit_options.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest {

inline constexpr std::size_t inline_image = 48 << 10;  // bytes; a record has 64 KiB, sizes and options included

// `record`: a LoadRecord, or a struct that extends it. `behind`: the bytes after the image.
template <class Record, class Read>
Sent send_image(int call, Context& context, Record record, const Image& image, const JitOptions& o,
                std::span<const Part> behind, Read read) {
  std::vector<std::uint64_t> words;  // sizes, options and values, in the order in which they follow the record
  for (const Part& part : image.parts) words.push_back(part.bytes);
  append(o, words);
  std::vector<Part> parts{{words.data(), words.size() * 8}};
  const bool in_record = image.bytes + words.size() * 8 <= inline_image;
  if (in_record) parts.insert(parts.end(), image.parts.begin(), image.parts.end());
  parts.insert(parts.end(), behind.begin(), behind.end());
  record.arena = ring::absent;
  if (in_record) return cross({.call = call, .context = context}, record, parts, read);
  StagedImage staged(image);
  if (!staged.ok() && !session()->liveness().usable()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  if (!staged.ok()) {
    log(Level::Error, "an image of %zu bytes does not fit into the arena: give the VM a larger region", image.bytes);
    return {CUDA_ERROR_OUT_OF_MEMORY, {}};
  }
  record.arena = staged.offset();
  const Sent sent = cross({.call = call, .context = context}, record, parts, read);
  if (sent.unanswered) staged.keep_until(sent.use);
  return sent;
}

}  // namespace guest
