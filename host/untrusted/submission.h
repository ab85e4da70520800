// The GPU work that one call submits, for the scheduler of GPU time and for the counters. A channel's thread creates
// this object before the call, and ends it with the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "host/session/session.h"
#include "host/untrusted/marshal/captured.h"
#include "host/untrusted/marshal/request.h"
#include "host/untrusted/runs_concurrently.h"
#include "ring/api/call.h"

namespace host {

class Submission {
 public:
  Submission(std::uint32_t channel, const Request& request, api::Manner manner, std::span<const std::byte> payload)
      : session_(request.session), submits_(manner.submits && !adds_to_capture(request)) {
    if (!session_.gpu_use.is_scheduled()) return;
    context_ = request.working_context();
    const bool takes_gpu = submits_ && !runs_concurrently(request.header.call, payload);
    if (takes_gpu) session_.gpu_use.submitted(channel, context_);
    // A call with a reply covers earlier submissions if the call waits, or if its reply is sent when its work is done.
    waits_ = (request.header.flags & ring::flag_wants_reply) != 0 && (takes_gpu || manner.asks != api::Asks::Nothing);
    if (waits_) covered_ = session_.gpu_use.submissions(context_);
  }

  void ended(CUresult result) {
    if (waits_ && result != CUDA_ERROR_NOT_READY) session_.gpu_use.waited(context_, covered_);
  }
  // Returns whether the call gives the GPU work when it succeeds.
  bool submits() const { return submits_; }

 private:
  // A captured call gives the GPU no work. Only the launch of the graph does.
  static bool adds_to_capture(const Request& request) {
    Session& session = request.session;
    if (!session.graphs.captures.any()) return false;
    return session.contexts.make_current(ring::context_of(request.header.flags)) == CUDA_SUCCESS &&
           is_on_captured_stream(request);
  }

  Session& session_;
  const bool submits_;
  bool waits_ = false;
  unsigned context_ = 0;
  std::uint64_t covered_ = 0;  // number of the context's submissions for which the call waits
};

}  // namespace host
