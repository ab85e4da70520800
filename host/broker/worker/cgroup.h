// Limits of memory, threads and processor time for all workers of a VM, by control groups (version 2).
//
// If the broker's own group is delegated to it (systemd: Delegate=yes), it makes a child group for each VM, and each
// worker joins it before it runs. A group whose children have limits may contain no process, so the broker moves into a
// leaf beside them. At its end it moves back and removes what it made. If groups are impossible, missing() has the
// reason, and only budgets bound sessions (host/session/memory/budget.h).
//
// Trust: the kernel writes these files; Landlock and the user keep workers from them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "host/base/fd.h"
#include "host/base/result.h"

namespace host::broker {

// 0: unlimited.
struct GroupLimits {
  std::int64_t memory_bytes = 0;
  std::int64_t pids = 0;
  std::int64_t cpu_thousandths = 0;  // of one processor
};

struct GroupUse {
  std::uint64_t memory_bytes = 0, oom_kills = 0, pids = 0, throttled_us = 0;
};

// The path of a process's group; "" if it has none of version 2. The arguments are the contents of /proc/self/cgroup
// and /proc/self/mountinfo.
std::string own_group(std::string_view cgroup, std::string_view mountinfo);

// Why control groups cannot limit memory, threads and processor time on this machine, as half a sentence; "" if they
// can. Changes nothing.
std::string groups_missing_here();

// The number after a key in a flat file of the kernel ("oom_kill 3"); 0 if missing.
std::uint64_t number_of(std::string_view text, std::string_view key);

// The control group of one VM.
class Group {
 public:
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& path() const { return path_; }
  // A process that writes "0" here joins the group.
  int entrance() const { return entrance_.get(); }
  // "" if the limits are in effect, else the reason. Memory over a lowered limit is reclaimed first if possible.
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
  // Prepares the broker's group for children with limits, if permitted. Precondition: it has no child yet.
  Groups();
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  // Why there are no groups, as half a sentence; "" if there are.
  const std::string& missing() const { return missing_; }
  const std::string& path() const { return path_; }
  // The error is one sentence. Precondition: missing() is empty.
  Result<std::unique_ptr<Group>> make(const std::string& vm, const GroupLimits& limits) const;

 private:
  std::string prepare();
  std::string enter_leaf();
  void undo();

  std::string path_, missing_;
  std::string leaf_;  // the broker's own leaf; "": it did not move
};

}  // namespace host::broker
