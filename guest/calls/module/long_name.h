// Names of functions and variables, as lookups send them: behind the record or, where they are longer than a record, through
// the arena. Templates make long ones, and CUDA bounds none. Only lookup.cc uses this.
//
// Invariant: between the record that brings a name and its lookup no thread sends another lookup by this channel.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "guest/marshal/custom.h"
#include "guest/objects/objects.h"

namespace guest {

class SentName {
 public:
  // Sends a long name ahead. Preconditions: the caller sends its lookup in `context`, and before this object ends.
  SentName(const char* name, Context& context);
  SentName(const SentName&) = delete;
  SentName& operator=(const SentName&) = delete;

  // The error that the call returns; CUDA_SUCCESS: the lookup can be sent.
  CUresult result() const { return result_; }
  // For the lookup: its bytes, and what follows it.
  std::uint64_t bytes() const { return part_.bytes; }
  std::span<const Part> parts() const { return {&part_, part_.bytes == 0 ? 0U : 1U}; }

 private:
  CUresult bring(const char* name, std::size_t bytes, Context& context);

  std::unique_lock<std::mutex> one_at_a_time_;
  Part part_;
  CUresult result_ = CUDA_SUCCESS;
};

// Asks for the name of a function or a kernel that was found in a list, where the reply had no room for it. Empty: it did
// not come.
std::string ask_for_name(std::uint64_t id, api::Handle kind, Context& context);

}  // namespace guest
