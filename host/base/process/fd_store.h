// Descriptors that outlive the broker: the service manager holds a copy of each from when it is made until it is gone, and
// passes all of them to the next broker (sd_notify(3): FDSTORE, FDSTOREREMOVE, and LISTEN_FDS). So whatever the other end
// of a socket or a pipe is, it sees no end while one broker follows another (docs/design/034-restart.md).
//
// Each has a name of its own: "VM/region", "VM/3/control". Trust: the manager is trusted, and what it passes was made by a
// broker; but by which, and whether all of it is there, whoever takes a descriptor has to look at.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "host/base/fd.h"
#include "host/base/process/service_manager.h"

namespace host::broker {

class FdStore {
 public:
  // Takes over what an earlier broker has left, by LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, and takes these out of the
  // environment: the broker's children are passed none of it.
  explicit FdStore(ServiceManager& manager);
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;

  // From now on a copy of it is held, unless too many wait for the manager. Nothing else has this name.
  void keep(const std::string& name, int fd);
  void forget(const std::string& name);
  // What an earlier broker has left under this name; empty: nothing. It is held on.
  Fd take(const std::string& name);
  bool has(const std::string& name) const { return left_.contains(name); }
  // The same without taking it. Precondition: has(name).
  const Fd& peek(const std::string& name) const { return left_.at(name); }
  // The names that begin so, of what is left.
  std::set<std::string> left(const std::string& beginning) const;
  // Everything whose name begins so, taken or not, is held no more. Connections that nobody
  // has taken end. Processes that nobody has taken are killed, or end_processes_by() ends them.
  void forget_all(const std::string& beginning);
  // What nobody has taken.
  void forget_left();
  // Who ends the processes among these, by their pidfds; null: they are killed.
  void end_processes_by(std::function<void(Fd)> end) { end_process_ = std::move(end); }
  void end_process(Fd process);
  // Sends what the manager is to be told, as far as it reads within a moment, for a caller that goes on once it has let go.
  void tell_now() { manager_.finish(); }

 private:
  void end_left(const std::string& name);

  ServiceManager& manager_;
  std::function<void(Fd)> end_process_;
  std::map<std::string, Fd> left_;  // not taken yet
  std::set<std::string> held_;
};

// Ends a connection for all who have its descriptor, and kills the process of a pidfd.
void end_what_it_names(int fd);

// A VM's part of it, whose names it completes. One without a store keeps nothing, and finds nothing.
class VmStore {
 public:
  VmStore() = default;
  VmStore(FdStore* store, const std::string& vm) : store_(store), beginning_(vm + "/") {}

  explicit operator bool() const { return store_ != nullptr; }
  FdStore* all() const { return store_; }
  void keep(const std::string& name, int fd) const {
    if (store_ != nullptr) store_->keep(beginning_ + name, fd);
  }
  void forget(const std::string& name) const {
    if (store_ != nullptr) store_->forget(beginning_ + name);
  }
  Fd take(const std::string& name) const { return store_ != nullptr ? store_->take(beginning_ + name) : Fd(); }
  bool has(const std::string& name) const { return store_ != nullptr && store_->has(beginning_ + name); }
  // Without the VM's own beginning.
  std::set<std::string> left(const std::string& beginning = "") const;
  void forget_all() const {
    if (store_ != nullptr) store_->forget_all(beginning_);
  }

 private:
  FdStore* store_ = nullptr;
  std::string beginning_;
};

}  // namespace host::broker
