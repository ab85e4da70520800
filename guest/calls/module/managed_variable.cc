#include "guest/calls/module/managed_variable.h"

#include <vector>

#include "guest/base/log.h"
#include "guest/marshal/sending.h"
#include "ring/api/known_ids.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

using Outcome = Variables::Outcome;

// Returns the problem and the remedy, in one sentence.
const char* words_for(Outcome outcome) {
  switch (outcome) {
    case Outcome::TooMany: return "a process may have 1 MiB of them; memory of cuMemAllocManaged has no such bound";
    case Outcome::Taken:
      return "this process has something else at the address that the driver has chosen; start the program again, "
             "since "
             "addresses differ from one start to the next";
    case Outcome::NoRoom: return "the session's arena is full; give the VM a larger region_size, or fewer slots";
    default: return "its pages could not be mapped at the driver's address";
  }
}

Sent shadow_copy(Context& context, const Variables::Piece& piece) {
  const api::ShadowRecord record{.address = piece.start, .bytes = piece.bytes, .arena = piece.arena};
  return send(
      this_channel(), sending(api::id_of::shadow_variable, api::Way::Waited, context, sizeof record, Earlier::Left),
      [&](ring::Writer& w) { w.bytes(&record, sizeof record); }, read_nothing);
}

}  // namespace

// If the worker refuses one section, the worker keeps shadowing the other sections until the owner ends.
CUresult share_variable(Context& context, std::uint64_t owner, const api::GlobalReply& variable, const char* name) {
  Session& s = *session();
  const ring::MutexLock lock(s.code.lookups);
  std::vector<Variables::Piece> pieces;
  const Outcome outcome = s.code.variables->add(variable.address, variable.bytes, owner, pieces);
  if (outcome != Outcome::Done) {
    log(Level::Warn, "the managed variable %s of %llu bytes cannot be used: %s", name,
        static_cast<unsigned long long>(variable.bytes), words_for(outcome));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (const Variables::Piece& piece : pieces)
    if (const Sent sent = shadow_copy(context, piece); sent.result != CUDA_SUCCESS) return sent.result;
  return CUDA_SUCCESS;
}

}  // namespace guest
