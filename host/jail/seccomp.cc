#include "host/jail/seccomp.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "host/jail/seccomp_policy.h"

namespace host::jail {
namespace {

#ifndef PR_SET_VMA
constexpr unsigned PR_SET_VMA = 0x53564d41;
#endif

// One alternative of a check. All comparisons of an alternative must be true.
using Alternative = std::vector<scmp_arg_cmp>;

Alternative masked(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
  return {SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value)};
}

Alternative equal(unsigned argument, scmp_datum_t value) { return {SCMP_CMP(argument, SCMP_CMP_EQ, value, 0)}; }

constexpr scmp_datum_t open_flags_that_matter = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
constexpr scmp_datum_t thread_flags = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND;
constexpr scmp_datum_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                         CLONE_NEWPID | CLONE_NEWNET | CLONE_PARENT | CLONE_PTRACE;
// The kernel uses only these bits of a request, although the C library passes a long. Of socket()'s arguments, the
// kernel uses only these bits, too.
constexpr scmp_datum_t request_mask = 0xffffffff;
constexpr scmp_datum_t int_mask = 0xffffffff;

struct Limits {
  Requests requests;
  std::size_t movable_bytes;
  bool asks_to_connect;
};

// Allows F_SETFL with O_NONBLOCK and no other flag. The kernel ignores the access mode.
Alternative no_more_waits() {
  return {SCMP_CMP(1, SCMP_CMP_EQ, F_SETFL, 0), SCMP_CMP(2, SCMP_CMP_MASKED_EQ, int_mask & ~O_ACCMODE, O_NONBLOCK)};
}

Alternative client_socket() {
  constexpr scmp_datum_t any_of = SOCK_CLOEXEC | SOCK_NONBLOCK;
  return {SCMP_CMP(0, SCMP_CMP_MASKED_EQ, int_mask, AF_UNIX),
          SCMP_CMP(1, SCMP_CMP_MASKED_EQ, int_mask & ~any_of, SOCK_SEQPACKET),
          SCMP_CMP(2, SCMP_CMP_MASKED_EQ, int_mask, 0)};
}

Alternative credentials_option() {
  return {SCMP_CMP(1, SCMP_CMP_MASKED_EQ, int_mask, SOL_SOCKET),
          SCMP_CMP(2, SCMP_CMP_MASKED_EQ, int_mask, SO_PASSCRED)};
}

std::vector<Alternative> device_requests(Requests allowed) {
  if (allowed == Requests::Any) return {{}};
  std::vector<Alternative> all;
  if (allowed == Requests::None) return all;
  for (const Request& request : listed_requests) all.push_back(masked(1, request_mask, request.number));
  return all;
}

std::vector<Alternative> alternatives(Check check, const Limits& limits) {
  switch (check) {
    case Check::Any: return {{}};
    case Check::NotExecutable: return {masked(2, PROT_EXEC, 0)};
    case Check::ReadOnly: return {masked(2, open_flags_that_matter, O_RDONLY)};
    case Check::ReadWrite: return {masked(2, open_flags_that_matter, O_RDWR)};
    case Check::WriteOnly: return {masked(2, open_flags_that_matter, O_WRONLY)};
    case Check::Thread: return {masked(0, thread_flags | namespace_flags, thread_flags)};
    case Check::OwnProcess: return {equal(0, static_cast<scmp_datum_t>(getpid())), equal(0, 0)};
    case Check::OwnLimits: return {equal(2, 0)};
    case Check::ThreadName: return {equal(0, PR_SET_NAME), equal(0, PR_GET_NAME), equal(0, PR_SET_VMA)};
    case Check::DeviceControl: return device_requests(limits.requests);
    case Check::MovesArena:
      if (limits.movable_bytes == 0) return {};
      return {{SCMP_CMP(1, SCMP_CMP_EQ, limits.movable_bytes, 0), SCMP_CMP(2, SCMP_CMP_EQ, limits.movable_bytes, 0),
               SCMP_CMP(3, SCMP_CMP_EQ, MREMAP_MAYMOVE | MREMAP_FIXED, 0)}};
    case Check::Descriptor:
      return {equal(1, F_DUPFD), equal(1, F_DUPFD_CLOEXEC), equal(1, F_GETFD),
              equal(1, F_SETFD), equal(1, F_GETFL),         no_more_waits()};
    case Check::ClientSocket: return {client_socket()};
    case Check::Credentials: return {credentials_option()};
  }
  return {};
}

constexpr std::uint32_t action_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Allow:
    case Verdict::AllowIfDevices:
    case Verdict::AllowIfClient: return SCMP_ACT_ALLOW;
    case Verdict::AskIfClient: return SCMP_ACT_NOTIFY;
    case Verdict::Deny: return SCMP_ACT_ERRNO(EPERM);
    case Verdict::Absent: return SCMP_ACT_ERRNO(ENOSYS);
    case Verdict::Kill: return SCMP_ACT_KILL_PROCESS;
  }
  return SCMP_ACT_KILL_PROCESS;
}

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

std::atomic<bool> listed_only{false};

// Adds a rule. Returns 0 or a negative errno. A call that this machine's libseccomp does not know is refused by
// default.
int add(void* filter, const Rule& rule, const Limits& limits) {
  const int number = seccomp_syscall_resolve_name(rule.call);
  if (number == __NR_SCMP_ERROR || rule.verdict == Verdict::Deny) return 0;  // EPERM is the default
  for (const Alternative& alternative : alternatives(rule.check, limits)) {
    const int result = seccomp_rule_add_array(filter, action_of(rule.verdict), number,
                                              static_cast<unsigned>(alternative.size()), alternative.data());
    if (result != 0) return result;
  }
  return 0;
}

bool is_for(Verdict verdict, const Limits& limits) {
  switch (verdict) {
    case Verdict::AllowIfDevices: return limits.requests != Requests::None;
    case Verdict::AllowIfClient:
    case Verdict::AskIfClient: return limits.asks_to_connect;
    default: return true;
  }
}

int set_up(void* filter, const Limits& limits) {
  int result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  if (result == 0) result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (result == 0)
    // 2 means a binary tree, because the policy is long
    result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const Rule& rule : policy) {
    if (result != 0) return result;
    if (is_for(rule.verdict, limits)) result = add(filter, rule, limits);
  }
  return result;
}

// Loads the filter. Returns 0 or a negative errno.
int load(const Limits& limits, int* listener) {
  const Filter filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!filter) return -ENOMEM;
  int result = set_up(filter.get(), limits);
  if (result == 0) result = seccomp_load(filter.get());
  if (result == 0 && listener != nullptr) *listener = seccomp_notify_fd(filter.get());
  return result;
}

}  // namespace

Result apply_seccomp(Requests requests, std::size_t movable_bytes, int* listener) {
  Result result{Layer::Seccomp, {}};
  int failed = -ENOSYS;
  if (listener != nullptr) {
    *listener = -1;
    failed = load({requests, movable_bytes, true}, listener);
  }
  if (failed != 0) failed = load({requests, movable_bytes, false}, nullptr);
  if (failed != 0) result.missing = std::string("seccomp: ") + std::strerror(-failed);
  if (failed == 0) listed_only.store(requests != Requests::Any, std::memory_order_relaxed);
  return result;
}

bool list_in_force() { return listed_only.load(std::memory_order_relaxed); }

}  // namespace host::jail
