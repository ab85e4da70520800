#include "host/broker/vm/session_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace host::broker {
namespace {

// A claimer writes its owner and its name at once; an older guest library writes no name.
constexpr auto name_patience = std::chrono::milliseconds(500);

}  // namespace

void SessionLog::begin(std::uint32_t k) { sessions_[k] = {.claimed = Clock::now(), .program = {}}; }

void SessionLog::read_program(std::uint32_t k) {
  sessions_[k].process = region_.owner(k).pid;
  sessions_[k].program = region_.program(k);
}

void SessionLog::learn_program(std::uint32_t k) {
  Session& session = sessions_[k];
  if (session.start_logged) return;
  read_program(k);
  if ((session.process == 0 || session.program.empty()) && age(k) < name_patience) return;
  session.start_logged = true;
  if (const auto more = starts_.admit()) spdlog::info("{} starts{}", in_words(k), *more);
}

// "t: session 3 of vector_add (process 812)", as the program reports itself.
std::string SessionLog::in_words(std::uint32_t k) const {
  const Session& session = sessions_[k];
  return fmt::format("{}: session {} of {} (process {})", vm_, k,
                     session.program.empty() ? "a program without a name" : session.program, session.process);
}

void SessionLog::end(std::uint32_t k, const std::string& why) {
  Session& session = sessions_[k];
  if (std::exchange(session.ended, true)) return;
  if (!session.start_logged) read_program(k);
  session.start_logged = true;
  const auto more = ends_.admit();
  if (!more) return;
  const double seconds = std::chrono::duration<double>(age(k)).count();
  if (why.empty())
    spdlog::info("{} ends after {:.1f} s{}", in_words(k), seconds, *more);
  else
    spdlog::warn("{} ends after {:.1f} s: {}{}", in_words(k), seconds, why, *more);
}

void SessionLog::worker_ended(std::uint32_t k, const std::string& how) {
  if (const auto more = worker_ends_.admit()) spdlog::info("{}: slot {}: the worker {}{}", vm_, k, how, *more);
}

// Only the VM's own programs can give a slot back.
void SessionLog::all_slots_taken() {
  if (const auto more = full_.admit())
    spdlog::warn(
        "{}: all {} slots are taken, and a program waits for one: `ivgpu status` shows who has them, `ivgpu end` ends "
        "one, and slots in [vm.{}] gives more after a restart{}",
        vm_, sessions_.size(), vm_, *more);
}

void SessionLog::save(std::uint32_t k, SavedSlot& to) const {
  const Session& session = sessions_[k];
  to.claimed_ns = in_nanoseconds(session.claimed);
  to.start_logged = session.start_logged;
  to.ended = session.ended;
}

void SessionLog::adopt(std::uint32_t k, const SavedSlot& was) {
  Session& session = sessions_[k];
  session.claimed = moment_of(was.claimed_ns);
  session.start_logged = was.start_logged != 0;
  session.ended = was.ended != 0;
  if (ring::SlotWord::of(was.word).held()) read_program(k);
}

}  // namespace host::broker
