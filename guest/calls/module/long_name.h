// Names of functions and variables in lookups: after the record or, if too long for a record, through the arena.
// Templates make long ones, and CUDA sets no bound. Only lookup.cc uses this.
//
// Invariant: between a record with a name and its lookup no thread sends another lookup through this channel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"
#include "ring/base/mutex.h"

namespace guest {

class SentName {
 public:
  // Sends a long name ahead. Preconditions: the caller sends its lookup in `context` while this object lives.
  SentName(const char* name, Context& context);
  SentName(const SentName&) = delete;
  SentName& operator=(const SentName&) = delete;

  // The error for the call; CUDA_SUCCESS: the lookup can be sent.
  CUresult result() const { return result_; }
  // For the lookup's record: the name's length, and the bytes after the record.
  std::uint64_t bytes() const { return part_.bytes; }
  std::span<const Part> parts() const { return {&part_, part_.bytes == 0 ? 0U : 1U}; }

 private:
  CUresult bring(const char* name, std::size_t bytes, Context& context);

  std::optional<ring::MutexLock> one_at_a_time_;
  Part part_;
  CUresult result_ = CUDA_SUCCESS;
};

// Fetches the name of a function or kernel that was found in a list, if the reply had no space for it. Empty: the fetch
// failed.
std::string ask_for_name(std::uint64_t id, api::Handle kind, Context& context);

}  // namespace guest
