// Lets the broker's sessions outlive it (docs/design/034-restart.md).
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/broker/daemon.h"
#include "host/broker/mps/mps_store.h"

namespace host::broker {

bool Daemon::keep_sessions(std::string& error) {
  if (!manager_.is_there() || broker_.outlive_s == 0) return true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    error = fmt::format("a pipe for workers cannot be made: {}", std::strerror(errno));
    return false;
  }
  life_of_workers_.reset(ends[0]);
  life_.reset(ends[1]);
  program_.store = &store_;
  program_.life_fd = life_of_workers_.get();
  program_.outlive_ms = static_cast<std::uint32_t>(broker_.outlive_s) * 1000;
  return true;
}

// Releases descriptors of VMs that are not served any more, or whose sessions are not kept any more.
void Daemon::forget_left() {
  std::set<std::string> vms;
  for (const std::string& name : store_.left(""))
    if (const std::size_t slash = name.find('/'); slash != std::string::npos) vms.insert(name.substr(0, slash));
  for (const std::string& vm : vms) spdlog::warn("{}: its sessions of before the restart end", vm);
  end_left_mps(store_);
  remove_left_sockets(store_);
  store_.forget_left();
}

// Cleans up as little as a kill would, so that the next broker starts alike after both. Ends only what the next broker
// cannot take over.
void Daemon::leave() {
  if (stopping_) return;
  stopping_ = leaving_all_ = true;
  std::size_t sessions = 0;
  for (const auto& vm : vms_) sessions += vm->sessions();
  spdlog::info("ending: asked to end; {} session(s) go on for {} s without ivgpud", sessions, broker_.outlive_s);
  manager_.stopping();
  leaving_.clear();
  std::erase_if(vms_, [](const auto& vm) { return !vm->outlives_broker(); });
  if (mps_ != nullptr) mps_->leave();
  manager_.finish();
  loop_.stop();
}

}  // namespace host::broker
