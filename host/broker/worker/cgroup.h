// Bounds of the memory, threads and processor time that a VM's workers take together, by control groups of version 2.
//
// A broker whose own group is delegated to it (systemd: Delegate=yes) makes a group below it for each VM, and puts each
// worker there before it runs. A group with children that are bounded may have no process of its own, so the broker
// goes into a leaf beside them; at its end it goes back and removes what it made. Where no group can be made, missing()
// says why, and sessions are bounded by their budgets alone (host/session/memory/budget.h).
//
// Trust: the kernel writes these files; no worker can reach them (Landlock, and its user).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "host/base/fd.h"

namespace host::broker {

// 0: no bound.
struct GroupLimits {
  std::int64_t memory_bytes = 0;
  std::int64_t pids = 0;
  std::int64_t cpu_thousandths = 0;  // of one processor
};

struct GroupUse {
  std::uint64_t memory_bytes = 0, oom_kills = 0, pids = 0, throttled_us = 0;
};

// The place of a process's own group in the file system; "" if it has none of version 2. The texts are those of
// /proc/self/cgroup and /proc/self/mountinfo.
std::string own_group(std::string_view cgroup, std::string_view mountinfo);

// Why no process of this machine can have groups below its own that bound memory, threads and processor time, as half a
// sentence; "": some can. Asks and changes nothing.
std::string groups_missing_here();

// The number behind a key in a flat file of the kernel's ("oom_kill 3"); 0 where there is no such line.
std::uint64_t number_of(std::string_view text, std::string_view key);

// The group of one VM.
class Group {
 public:
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& path() const { return path_; }
  // A process that writes "0" here goes into the group.
  int entrance() const { return entrance_.get(); }
  // "" when they hold from now on, else why not. Memory beyond a lower bound is taken back first, as far as that goes.
  std::string bound(const GroupLimits& limits) const;
  GroupUse use() const;

 private:
  friend class Groups;
  explicit Group(std::string path) : path_(std::move(path)) {}
  std::string path_;
  Fd entrance_;
};

class Groups {
 public:
  // Makes the broker's own group one that can have bounded children, where it may. Preconditions: no child yet.
  Groups();
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  // Why there are no groups, as half a sentence; "": there are.
  const std::string& missing() const { return missing_; }
  const std::string& path() const { return path_; }
  // Null on failure, and `error` is one sentence. Preconditions: nothing is missing().
  std::unique_ptr<Group> make(const std::string& vm, const GroupLimits& limits, std::string& error) const;

 private:
  std::string prepare();
  std::string enter_leaf();
  void undo();

  std::string path_, missing_;
  std::string leaf_;  // where the broker has put itself; "": it stayed
};

}  // namespace host::broker
