// The system calls that a worker may make while it serves a guest. This table is the whole policy.
//
// Unlisted calls fail with EPERM, so that a driver that merely tries them continues. A call that no driver or C library
// makes, but an attacker would, kills the process. seccomp cannot see paths: Landlock limits the files that `openat`
// may reach. This table forbids creating files, and allows writing only to device files.
#pragma once

#include <string_view>

namespace host::jail {

enum class Verdict {
  Allow,
  AllowIfDevices,  // only for a driver with open device files; Landlock keeps all other files closed
  AllowIfClient,   // only for a client of MPS whose calls the broker answers; for other workers like Deny
  // Like AllowIfClient, but the broker makes the call instead of the kernel, so the arguments have no effect.
  AskIfClient,
  Deny,    // EPERM, as for an unlisted call; listed because a reader may look for the call
  Absent,  // ENOSYS: the C library then uses an older call, whose arguments can be checked
  Kill,
};

// The condition on the arguments that the verdict requires; if it is false, the call gets EPERM.
enum class Check {
  Any,
  NotExecutable,  // arg 2 has no PROT_EXEC
  ReadOnly,       // arg 2 (openat) requests reading, and neither creates nor truncates
  ReadWrite,      // arg 2 (openat) requests reading and writing, and neither creates nor truncates
  WriteOnly,      // arg 2 (openat) requests writing, and neither creates nor truncates
  Thread,         // arg 0 (clone) creates a thread, in no new namespace
  OwnProcess,     // arg 0 is this process
  OwnLimits,      // prlimit64 without new limits
  ThreadName,     // prctl that sets the name of a thread or a mapping
  DeviceControl,  // ioctl with a number of ioctls.h
  MovesArena,     // mremap that moves exactly the arena's size, and changes no size
  Descriptor,     // fcntl that duplicates a descriptor, or reads or sets its flags
  ClientSocket,   // socket(AF_UNIX, SOCK_SEQPACKET, 0), which sends nothing unless connected
  Credentials,    // setsockopt of SO_PASSCRED
};

struct Rule {
  const char* call;
  Verdict verdict;
  Check check;
  std::string_view why;
};

inline constexpr Rule policy[] = {
    // Waiting and waking.
    {"futex", Verdict::Allow, Check::Any, "every lock; guests wait on it in loopback"},
    {"poll", Verdict::Allow, Check::Any, "the doorbell, the control socket, the driver's blocking waits"},
    {"ppoll", Verdict::Allow, Check::Any, "the same"},
    {"read", Verdict::Allow, Check::Any, "eventfd, pipes"},
    {"write", Verdict::Allow, Check::Any, "eventfd, the log"},
    {"readv", Verdict::Allow, Check::Any, "the same, gathered"},
    {"writev", Verdict::Allow, Check::Any, "the same, gathered"},
    {"pread64", Verdict::Allow, Check::Any, "reading /proc and /sys"},
    {"recvmsg", Verdict::Allow, Check::Any, "the control socket; a sharing daemon's open sockets"},
    {"recvfrom", Verdict::Allow, Check::Any, "the same"},
    {"sendmsg", Verdict::Allow, Check::Any, "the same"},
    {"sendto", Verdict::Allow, Check::Any, "the same"},
    {"nanosleep", Verdict::Allow, Check::Any, "timed waits"},
    {"clock_nanosleep", Verdict::Allow, Check::Any, "timed waits"},
    {"clock_gettime", Verdict::Allow, Check::Any, "time, where the vDSO does not answer"},
    {"clock_getres", Verdict::Allow, Check::Any, "the same"},
    {"gettimeofday", Verdict::Allow, Check::Any, "the same"},
    {"time", Verdict::Allow, Check::Any, "the same"},
    {"sched_yield", Verdict::Allow, Check::Any, "polite spinning"},
    {"membarrier", Verdict::Allow, Check::Any, "fences between own threads"},

    // Memory. mremap moves the arena into its window.
    {"mmap", Verdict::Allow, Check::NotExecutable, "heap, stacks, device memory; no new code"},
    {"mprotect", Verdict::Allow, Check::NotExecutable, "heap, thread stacks; no new code"},
    {"munmap", Verdict::Allow, Check::Any, "memory"},
    {"mremap", Verdict::Allow, Check::MovesArena, "the arena's window; what could grow would reach other sessions"},
    {"madvise", Verdict::Allow, Check::Any, "giving pages back"},
    {"mincore", Verdict::Allow, Check::Any, "asking what is mapped"},
    {"msync", Verdict::Allow, Check::Any, "the same"},
    {"mlock", Verdict::Allow, Check::Any, "pinning own memory"},
    {"munlock", Verdict::Allow, Check::Any, "the same"},
    {"brk", Verdict::Allow, Check::Any, "heap"},
    {"get_mempolicy", Verdict::Allow, Check::Any, "the driver asks where memory lies"},
    {"mbind", Verdict::Allow, Check::Any, "the driver says where memory shall lie"},

    // Threads.
    {"clone", Verdict::Allow, Check::Thread, "a thread per channel, the driver's own"},
    {"clone3", Verdict::Absent, Check::Any, "its flags lie in memory and cannot be checked"},
    {"set_robust_list", Verdict::Allow, Check::Any, "start of a thread"},
    {"rseq", Verdict::Allow, Check::Any, "start of a thread"},
    {"set_tid_address", Verdict::Allow, Check::Any, "start of a thread"},
    {"gettid", Verdict::Allow, Check::Any, "names of threads, locks"},
    {"getpid", Verdict::Allow, Check::Any, "locks, abort"},
    {"getppid", Verdict::Allow, Check::Any, "whether the broker lives"},
    {"getuid", Verdict::Allow, Check::Any, "own identity"},
    {"geteuid", Verdict::Allow, Check::Any, "own identity"},
    {"getgid", Verdict::Allow, Check::Any, "own identity"},
    {"getegid", Verdict::Allow, Check::Any, "own identity"},
    {"sched_getaffinity", Verdict::Allow, Check::Any, "how many cores there are"},
    {"sched_setaffinity", Verdict::Allow, Check::OwnProcess, "own threads' cores"},
    {"sched_get_priority_max", Verdict::Allow, Check::Any, "the driver's JIT asks"},
    {"sched_get_priority_min", Verdict::Allow, Check::Any, "the driver's JIT asks"},
    {"sched_getparam", Verdict::Allow, Check::Any, "attributes of a thread"},
    {"sched_getscheduler", Verdict::Allow, Check::Any, "attributes of a thread"},
    {"getcpu", Verdict::Allow, Check::Any, "which core this is"},
    {"prctl", Verdict::Allow, Check::ThreadName, "names of threads"},
    {"prlimit64", Verdict::Allow, Check::OwnLimits, "size of stacks"},
    {"getrlimit", Verdict::Allow, Check::Any, "size of stacks"},
    {"getrusage", Verdict::Allow, Check::Any, "own use"},
    {"exit", Verdict::Allow, Check::Any, "end of a thread"},
    {"exit_group", Verdict::Allow, Check::Any, "end of the worker"},

    // Signals, only to the process itself.
    {"rt_sigaction", Verdict::Allow, Check::Any, "handlers of own signals"},
    {"rt_sigprocmask", Verdict::Allow, Check::Any, "start of a thread"},
    {"rt_sigreturn", Verdict::Allow, Check::Any, "end of a handler"},
    {"sigaltstack", Verdict::Allow, Check::Any, "stacks of handlers"},
    {"tgkill", Verdict::Allow, Check::OwnProcess, "abort"},
    {"timer_create", Verdict::Allow, Check::Any, "what bounds the waits of a channel's thread"},
    {"timer_settime", Verdict::Allow, Check::Any, "the same"},
    {"timer_delete", Verdict::Allow, Check::Any, "the same"},
    {"restart_syscall", Verdict::Allow, Check::Any, "a wait that a signal cut short"},

    // Descriptors and files.
    {"close", Verdict::Allow, Check::Any, "descriptors"},
    {"dup", Verdict::Allow, Check::Any, "the driver copies its device descriptors"},
    {"dup2", Verdict::Allow, Check::Any, "the same; the worker's own stdout"},
    {"dup3", Verdict::Allow, Check::Any, "the same"},
    {"fcntl", Verdict::Allow, Check::Descriptor, "the same; cuCtxCreate sets O_NONBLOCK of its eventfds and pipes"},
    {"eventfd2", Verdict::Allow, Check::Any, "the driver's waits"},
    {"pipe2", Verdict::Allow, Check::Any, "the driver's waits"},
    {"fstat", Verdict::Allow, Check::Any, "kinds of descriptors"},
    {"newfstatat", Verdict::Allow, Check::Any, "kinds of files"},
    {"stat", Verdict::Allow, Check::Any, "kinds of files"},
    {"lstat", Verdict::Allow, Check::Any, "kinds of files"},
    {"statx", Verdict::Allow, Check::Any, "kinds of files"},
    {"access", Verdict::Allow, Check::Any, "whether a file is there"},
    {"faccessat", Verdict::Allow, Check::Any, "whether a file is there"},
    {"faccessat2", Verdict::Allow, Check::Any, "whether a file is there"},
    {"readlink", Verdict::Allow, Check::Any, "links in /proc and /sys"},
    {"readlinkat", Verdict::Allow, Check::Any, "links in /proc and /sys"},
    {"getdents64", Verdict::Allow, Check::Any, "folders in /proc and /sys"},
    {"lseek", Verdict::Allow, Check::Any, "reading /proc"},
    {"openat", Verdict::Allow, Check::ReadOnly, "/proc, /sys, libraries"},
    {"openat", Verdict::AllowIfDevices, Check::ReadWrite, "/dev/nvidiactl, at the first stream-ordered allocation"},
    {"ioctl", Verdict::AllowIfDevices, Check::DeviceControl, "the driver's calls into its kernel modules"},

    // Information about the machine.
    {"getrandom", Verdict::Allow, Check::Any, "hash seeds"},
    {"sysinfo", Verdict::Allow, Check::Any, "how much memory there is"},
    {"uname", Verdict::Allow, Check::Any, "the kernel's version"},

    // Each context of an MPS client begins with a connection to the daemon (docs/design/031-mps.md).
    {"socket", Verdict::AllowIfClient, Check::ClientSocket, "what the broker's connection takes the place of"},
    {"setsockopt", Verdict::AllowIfClient, Check::Credentials, "daemon and client tell each other who they are"},
    {"connect", Verdict::AskIfClient, Check::Any, "the broker connects to the worker's daemon, whatever is asked for"},
    {"openat", Verdict::AllowIfClient, Check::WriteOnly, "the driver names the thread of a new context by /proc"},

    // Calls that are listed as refused because a reader may look for them. The calls above are allowed for a client of
    // MPS.
    {"socket", Verdict::Deny, Check::Any, "no new way out"},
    {"connect", Verdict::Deny, Check::Any, "no new way out"},
    {"setsockopt", Verdict::Deny, Check::Any, "nothing of a socket is changed"},
    {"kill", Verdict::Deny, Check::Any, "no signal to another process"},
    {"fork", Verdict::Deny, Check::Any, "no other process"},
    {"vfork", Verdict::Deny, Check::Any, "no other process"},

    // Calls that only an attacker makes.
    {"execve", Verdict::Kill, Check::Any, "another program"},
    {"execveat", Verdict::Kill, Check::Any, "another program"},
    {"ptrace", Verdict::Kill, Check::Any, "another process's memory"},
    {"process_vm_readv", Verdict::Kill, Check::Any, "another process's memory"},
    {"process_vm_writev", Verdict::Kill, Check::Any, "another process's memory"},
    {"pidfd_getfd", Verdict::Kill, Check::Any, "another process's descriptors"},
    {"io_uring_setup", Verdict::Kill, Check::Any, "opens files past this filter"},
    {"io_uring_enter", Verdict::Kill, Check::Any, "opens files past this filter"},
    {"io_uring_register", Verdict::Kill, Check::Any, "opens files past this filter"},
    {"mount", Verdict::Kill, Check::Any, "the file system's shape"},
    {"umount2", Verdict::Kill, Check::Any, "the file system's shape"},
    {"move_mount", Verdict::Kill, Check::Any, "the file system's shape"},
    {"open_tree", Verdict::Kill, Check::Any, "the file system's shape"},
    {"fsopen", Verdict::Kill, Check::Any, "the file system's shape"},
    {"mount_setattr", Verdict::Kill, Check::Any, "the file system's shape"},
    {"pivot_root", Verdict::Kill, Check::Any, "the file system's shape"},
    {"chroot", Verdict::Kill, Check::Any, "the file system's shape"},
    {"open_by_handle_at", Verdict::Kill, Check::Any, "files past their folders"},
    {"unshare", Verdict::Kill, Check::Any, "rights in a new namespace"},
    {"setns", Verdict::Kill, Check::Any, "another namespace"},
    {"bpf", Verdict::Kill, Check::Any, "code in the kernel"},
    {"init_module", Verdict::Kill, Check::Any, "code in the kernel"},
    {"finit_module", Verdict::Kill, Check::Any, "code in the kernel"},
    {"kexec_load", Verdict::Kill, Check::Any, "another kernel"},
    {"perf_event_open", Verdict::Kill, Check::Any, "watching the machine"},
    {"userfaultfd", Verdict::Kill, Check::Any, "stopping the kernel in mid-copy"},
    {"keyctl", Verdict::Kill, Check::Any, "the kernel's keys"},
    {"add_key", Verdict::Kill, Check::Any, "the kernel's keys"},
    {"request_key", Verdict::Kill, Check::Any, "the kernel's keys"},
};

}  // namespace host::jail
