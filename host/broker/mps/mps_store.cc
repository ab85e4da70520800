#include "host/broker/mps/mps_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "host/base/fd_message.h"
#include "host/base/hostile_text.h"
#include "host/base/process/pidfd.h"
#include "host/base/sealed_memory.h"

namespace host::broker {
namespace {

constexpr std::uint64_t mps_magic = 0x3153'504d'5453'4749;  // "IGSTMPS1"
// Version of SavedMps, and of the messages between a broker and an earlier broker's keeper.
constexpr std::uint32_t mps_version = 1;
static_assert(sizeof(SavedMps) == 40);

std::string mps_name(const char* what, const std::string& gpu) { return std::string("mps-") + what + "-" + gpu; }

constexpr const char* kept_of_daemon[] = {"control", "output", "process", "record"};

// ESRCH: the process has been reaped, but the descriptor is still a pidfd.
bool is_process(const Fd& fd) { return send_signal(fd.get(), 0) || errno == ESRCH; }

bool has_ended(const Fd& process) {
  pollfd end{process.get(), POLLIN, 0};
  return poll(&end, 1, 0) != 0;
}

// The keeper ends its daemon in order, within seconds.
void end_in_order(const Fd& control) { shutdown(control.get(), SHUT_WR); }

// Kills the keeper if possible: its clients are lost in any case.
void end_now(const MpsStore::Kept& kept) {
  end_in_order(kept.control);
  send_signal(kept.process.get(), SIGKILL);
}

SavedMps* map_record(const Fd& memfd) { return static_cast<SavedMps*>(map_memory(memfd, sizeof(SavedMps))); }

}  // namespace

bool MpsStore::keep(std::uint64_t place, int control, int output, int process) {
  forget();
  const Fd memfd = make_sealed_memory("ivgpud:mps:" + gpu_, sizeof(SavedMps));
  record_ = memfd && seal_for_good(memfd, true) ? map_record(memfd) : nullptr;
  if (record_ == nullptr) return false;
  *record_ = {};
  record_->version = mps_version, record_->bytes = sizeof(SavedMps), record_->place = place;
  std::atomic_signal_fence(std::memory_order_release);  // a broker killed before this point leaves no record
  record_->magic = mps_magic;
  kept_ = true;
  const int fds[] = {control, output, process, memfd.get()};
  for (std::size_t i = 0; i < std::size(fds); ++i) store_->keep(mps_name(kept_of_daemon[i], gpu_), fds[i]);
  return true;
}

void MpsStore::forget() {
  forget_record();
  if (!std::exchange(kept_, false)) return;
  for (const char* what : kept_of_daemon) store_->forget(mps_name(what, gpu_));
}

void MpsStore::forget_record() {
  if (record_ != nullptr) munmap(std::exchange(record_, nullptr), sizeof(SavedMps));
}

Result<void> MpsStore::find_record(std::uint64_t place) {
  const Fd memfd = store_->take(mps_name("record", gpu_));
  record_ = has_size(memfd, sizeof(SavedMps)) ? map_record(memfd) : nullptr;
  if (record_ == nullptr || record_->magic != mps_magic || record_->version != mps_version ||
      record_->bytes != sizeof(SavedMps) || record_->is_lost > 1)
    return Error{"its record is missing, or of another release"};
  if (record_->place != place) return Error{"its folder or its clients' user is another by now"};
  return {};
}

Result<void> MpsStore::check(std::uint64_t place, const Kept& kept) {
  if (const auto found = find_record(place); !found) return found.error();
  if (!kept.control || !kept.output || !kept.process)
    return Error{"not all of its descriptors were kept (FileDescriptorStoreMax)"};
  if (!is_process(kept.process)) return Error{"what was kept of it is no process"};
  if (!has_ended(kept.process)) return {};
  const std::string how = last_word(kept.control.get());
  return Error{fmt::format("it {} meanwhile", how.empty() ? "has ended" : how)};
}

Result<std::optional<MpsStore::Kept>> MpsStore::take(std::uint64_t place) {
  if (store_ == nullptr) return std::optional<Kept>();
  for (const char* what : kept_of_daemon) kept_ = kept_ || store_->has(mps_name(what, gpu_));
  if (!kept_) return std::optional<Kept>();
  Kept kept{store_->take(mps_name("control", gpu_)), store_->take(mps_name("output", gpu_)),
            store_->take(mps_name("process", gpu_))};
  if (const auto good = check(place, kept); !good) {
    end_now(kept);
    forget();
    return good.error();
  }
  return std::optional(std::move(kept));
}

std::string last_word(int control) {
  char bytes[128];
  const ssize_t length = receive_now(control, bytes, sizeof bytes);
  return length > 0 ? escaped({bytes, static_cast<std::size_t>(length)}) : "";
}

void end_left_mps(FdStore& store) {
  const std::string beginning = mps_name("control", "");
  for (const std::string& name : store.left(beginning)) {
    const std::string gpu = name.substr(beginning.size());
    spdlog::warn("the MPS daemon of {} of before the restart ends: nobody uses it any more", gpu);
    end_in_order(store.peek(name));
    for (const std::string& its : {name, mps_name("process", gpu)}) store.forget(its);
  }
}

}  // namespace host::broker
