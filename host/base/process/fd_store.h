// Descriptors that outlive the broker. The service manager holds a copy of each and passes them to the next broker
// (sd_notify(3): FDSTORE, FDSTOREREMOVE, LISTEN_FDS). The peer of a socket or pipe therefore sees no end while one
// broker follows another (docs/design/034-restart.md).
//
// Each descriptor has a unique name: "VM/region", "VM/3/control". Trust: the manager is trusted, and a broker made
// every descriptor that it passes. The set may be old or incomplete, so each user checks what it takes.
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
  // Takes over an earlier broker's descriptors. Removes LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES from the environment,
  // so that child processes do not see them.
  explicit FdStore(ServiceManager& manager);
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;

  // Has the manager hold a copy, unless too many requests wait for the manager. `name` must be unused.
  void keep(const std::string& name, int fd);
  void forget(const std::string& name);
  // Returns the descriptor that an earlier broker left under this name, or an empty Fd. The manager still holds its
  // copy.
  Fd take(const std::string& name);
  bool has(const std::string& name) const { return left_.contains(name); }
  // Returns the descriptor without taking it. Precondition: has(name).
  const Fd& peek(const std::string& name) const { return left_.at(name); }
  // Names of untaken descriptors that begin with `beginning`.
  std::set<std::string> left(const std::string& beginning) const;
  // Releases every descriptor whose name begins with `beginning`, taken or not. Untaken connections end. Untaken
  // processes are killed, or passed to the function of end_processes_by().
  void forget_all(const std::string& beginning);
  // Releases all untaken descriptors.
  void forget_left();
  // Sets the function that ends processes, by pidfd; null: kill them.
  void end_processes_by(std::function<void(Fd)> end) { end_process_ = std::move(end); }
  void end_process(Fd process);
  // Waits briefly until the manager has read the queued requests, for a caller that needs the descriptors released.
  void notify_now() { manager_.finish(); }

 private:
  void end_left(const std::string& name);

  ServiceManager& manager_;
  std::function<void(Fd)> end_process_;
  std::map<std::string, Fd> left_;  // not taken yet
  std::set<std::string> held_;
};

// Ends a connection for all holders of its descriptor, or kills the process of a pidfd.
void end_what_it_names(int fd);

// A VM's part of the store: it prepends the VM's name. Without a store it keeps and finds nothing.
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
  // The names lack the VM's prefix.
  std::set<std::string> left(const std::string& beginning = "") const;
  void forget_all() const {
    if (store_ != nullptr) store_->forget_all(beginning_);
  }

 private:
  FdStore* store_ = nullptr;
  std::string beginning_;
};

}  // namespace host::broker
