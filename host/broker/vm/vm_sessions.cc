// The log's lines on a VM's sessions: the program that starts one, its length, and when there is no slot left. Guests
// cause these lines, and the names in them are theirs.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;

// A claimer writes its owner and its name at once; an older guest library has no name to write.
constexpr auto name_patience = std::chrono::milliseconds(500);

}  // namespace

void Vm::session_begins(std::uint32_t k) {
  Slot& slot = slots_[k];
  slot.claimed = Clock::now();
  slot.peer = 0;
  slot.program.clear();
  slot.process = 0;
  slot.start_logged = slot.ended = false;
  slot.ended_for = nullptr;
  watch_session();
}

// Once, when the claimer has written its name, or has had the time to.
void Vm::learn_program(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || slot.start_logged) return;
  slot.process = region_->owner(k).pid;
  slot.program = region_->program(k);
  if ((slot.process == 0 || slot.program.empty()) && Clock::now() - slot.claimed < name_patience) return;
  tell_start(k);
}

// "t: session 3 of vector_add (process 812)": by its own account.
std::string Vm::in_words(std::uint32_t k) const {
  const Slot& slot = slots_[k];
  return fmt::format("{}: session {} of {} (process {})", options_.name, k,
                     slot.program.empty() ? "a program without a name" : slot.program, slot.process);
}

void Vm::tell_start(std::uint32_t k) {
  slots_[k].start_logged = true;
  if (const auto more = session_starts_.admit()) spdlog::info("{} starts{}", in_words(k), *more);
}

// Once for each session. `how`: why it is lost; "": its program has let go of it, or has ended.
void Vm::session_ends(std::uint32_t k, const std::string& how) {
  Slot& slot = slots_[k];
  if (std::exchange(slot.ended, true)) return;
  if (!slot.start_logged) {
    slot.process = region_->owner(k).pid;
    slot.program = region_->program(k);
  }
  slot.start_logged = true;
  const auto more = session_ends_.admit();
  if (!more) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - slot.claimed).count();
  if (how.empty())
    spdlog::info("{} ends after {:.1f} s{}", in_words(k), seconds, *more);
  else
    spdlog::warn("{} ends after {:.1f} s: {}{}", in_words(k), seconds, how, *more);
}

std::size_t Vm::end_sessions(std::optional<std::uint32_t> slot) {
  look();  // what guests did last
  std::size_t ended = 0;
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if ((slot && *slot != k) || slots_[k].known.state != SlotState::Claimed || !slots_[k].worker) continue;
    slots_[k].ended_for = "`ivgpu end` asked for it";
    slots_[k].worker->end(end_patience);
    ++ended;
  }
  return ended;
}

// A guest wants a slot and finds none: only the VM's own programs can give one back.
void Vm::tell_full() {
  const auto taken = [](const Slot& slot) { return slot.known.held() || slot.held_back; };
  if (!std::all_of(slots_.begin(), slots_.end(), taken)) return;
  if (const auto more = full_.admit())
    spdlog::warn(
        "{}: all {} slots are taken, and a program waits for one: `ivgpu status` shows who has them, `ivgpu end` ends "
        "one, and slots in [vm.{}] gives more after a restart{}",
        options_.name, slots_.size(), options_.name, *more);
}

}  // namespace host::broker
