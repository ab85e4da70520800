// Names of functions and variables in lookups. A name follows the record or, if the name is too long for a record, goes
// through the arena. Templates make long names, and CUDA sets no bound. Only lookup.cc uses this file.
//
// Invariant: between a record with a name and the lookup for that name, no thread sends another lookup through this
// channel.
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
  // Sends a long name ahead of its lookup. Preconditions: the caller sends the lookup in `context` while this object
  // exists.
  SentName(const char* name, Context& context);
  SentName(const SentName&) = delete;
  SentName& operator=(const SentName&) = delete;

  // Returns the error for the call, or CUDA_SUCCESS if the lookup can be sent.
  CUresult result() const { return result_; }
  // For the lookup's record: the length of the name, and the bytes that follow the record.
  std::uint64_t bytes() const { return part_.bytes; }
  std::span<const Part> parts() const { return {&part_, part_.bytes == 0 ? 0U : 1U}; }

 private:
  CUresult bring(const char* name, std::size_t bytes, Context& context);

  std::optional<ring::MutexLock> one_at_a_time_;
  Part part_;
  CUresult result_ = CUDA_SUCCESS;
};

// Fetches the name of a listed function or kernel whose reply had no space for the name. Returns an empty name if the
// fetch failed.
std::string ask_for_name(std::uint64_t id, api::Handle kind, Context& context);

}  // namespace guest
