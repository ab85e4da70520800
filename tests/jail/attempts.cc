// The attempts, one function each: a function returns 0 if the attempt succeeded, else errno. A function reverts its
// changes, since the test also makes the attempts without a jail, to check that they succeed there.
#include "tests/jail/attempts.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace misbehave {
namespace {

constexpr int most_descriptors = 2048;

int outcome(long result) { return result < 0 ? errno : 0; }

// The result of an attempt to get a descriptor.
int opened(long fd) {
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

int mapped(void* at, std::size_t bytes) {
  if (at == MAP_FAILED) return errno;
  munmap(at, bytes);
  return 0;
}

pid_t pid_in(const std::string& text) { return static_cast<pid_t>(std::atol(text.c_str())); }

// ---- files ---------------------------------------------------------------------------------------------------------

int read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  struct stat status {};
  fstat(fd, &status);
  char byte;
  const ssize_t n = S_ISDIR(status.st_mode) ? 0 : read(fd, &byte, 1);
  const int why = errno;
  close(fd);
  return n < 0 ? why : 0;
}

int write_file(const std::string& path) { return opened(open(path.c_str(), O_WRONLY | O_CLOEXEC)); }
int change_file(const std::string& path) { return opened(open(path.c_str(), O_RDWR | O_CLOEXEC)); }

int make_file(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  return outcome(unlink(path.c_str()));
}

int rename_file(const std::string& path) {
  const std::string other = path + ".moved";
  if (rename(path.c_str(), other.c_str()) != 0) return errno;
  return outcome(rename(other.c_str(), path.c_str()));
}

int open_by_handle(const std::string& path) {
  struct {
    file_handle handle;
    unsigned char room[128];
  } both{};
  both.handle.handle_bytes = sizeof both.room;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, path.c_str(), &both.handle, &mount, 0) != 0 && errno != EPERM) return errno;
  const int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int fd = open_by_handle_at(folder, &both.handle, O_RDONLY);
  const int why = errno;
  close(folder);
  return fd < 0 ? why : opened(fd);
}

// Code pages are private and read-only, but /proc allows writing them.
int write_own_memory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  unsigned char byte = 0;
  const auto at = reinterpret_cast<off_t>(&read_file);
  const bool wrote = pread(fd, &byte, 1, at) == 1 && pwrite(fd, &byte, 1, at) == 1;
  const int why = errno;
  close(fd);
  return wrote ? 0 : why;
}

int write_own_thread(const std::string&) {
  return write_own_memory("/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/mem");
}

// `flags`: "wait" clears O_NONBLOCK, "append" adds a flag, "go-on" only sets O_NONBLOCK, as the driver does.
int set_flags(const std::string& flags) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return errno;
  const int value = flags == "wait" ? 0 : flags == "append" ? O_NONBLOCK | O_APPEND : O_NONBLOCK;
  const int result = outcome(fcntl(fd, F_SETFL, value));
  close(fd);
  return result;
}

// ---- other sessions' pages -----------------------------------------------------------------------------------------

struct Mapping {
  std::uintptr_t from = 0, to = 0;
  std::string range;
};

// The last mapping of the region, by the region's name in /proc/self/maps.
Mapping region_mapping() {
  std::ifstream maps("/proc/self/maps");
  Mapping found;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:ivgpu") == std::string::npos) continue;
    Mapping here;
    here.range = line.substr(0, line.find(' '));
    if (std::sscanf(here.range.c_str(), "%lx-%lx", &here.from, &here.to) == 2) found = here;
  }
  return found;
}

// A shared mapping that grows continues in its file, here with the next slot.
int grow_the_slot(const std::string&) {
  const Mapping slot = region_mapping();
  if (slot.to == 0) return ENXIO;
  const std::size_t bytes = slot.to - slot.from, more = bytes + (2 << 20);
  void* at = mremap(reinterpret_cast<void*>(slot.from), 0, more, MREMAP_MAYMOVE);  // a second, longer mapping
  return mapped(at, more);
}

int grow_in_place(const std::string&) {
  const Mapping slot = region_mapping();
  if (slot.to == 0) return ENXIO;
  const std::size_t bytes = slot.to - slot.from;
  void* at = mremap(reinterpret_cast<void*>(slot.from), bytes, bytes + 4096, 0);
  if (at == MAP_FAILED) return errno;
  munmap(reinterpret_cast<void*>(slot.to), 4096);
  return 0;
}

// Opens the file behind a mapping, through /proc.
int open_the_region(const std::string&) {
  const Mapping slot = region_mapping();
  if (slot.to == 0) return ENXIO;
  return opened(open(("/proc/self/map_files/" + slot.range).c_str(), O_RDONLY | O_CLOEXEC));
}

// The file behind a descriptor, by its name in /proc.
std::string target_of(int fd) {
  char target[256] = {};
  if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1) < 0) target[0] = '?';
  return target;
}

// Maps any descriptor that is large enough to be a region, except the simulated GPU's memory, which belongs only to
// this session.
int map_any_descriptor(const std::string&) {
  for (int fd = 0; fd < most_descriptors; ++fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < (16 << 20)) continue;
    if (target_of(fd).find("ivgpu-simulated-memory") != std::string::npos) continue;
    return mapped(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 4096);
  }
  return EBADF;
}

// ---- other processes -----------------------------------------------------------------------------------------------

int trace(const std::string& pid) {
  if (ptrace(PTRACE_SEIZE, pid_in(pid), nullptr, nullptr) != 0) return errno;
  ptrace(PTRACE_INTERRUPT, pid_in(pid), nullptr, nullptr);
  waitpid(pid_in(pid), nullptr, __WALL);
  return outcome(ptrace(PTRACE_DETACH, pid_in(pid), nullptr, nullptr));
}

int read_memory(const std::string& pid) {
  char byte;
  iovec mine{&byte, 1}, theirs{reinterpret_cast<void*>(&read_memory), 1};
  const ssize_t n = process_vm_readv(pid_in(pid), &mine, 1, &theirs, 1, 0);
  return n < 0 && errno != EFAULT ? errno : 0;
}

int take_descriptor(const std::string& pid) {
  const long process = syscall(SYS_pidfd_open, pid_in(pid), 0);
  const long fd = syscall(SYS_pidfd_getfd, process, 0, 0);
  const int why = errno;
  if (process >= 0) close(static_cast<int>(process));
  if (fd >= 0) close(static_cast<int>(fd));
  return fd < 0 ? why : 0;
}

int watch_process(const std::string& pid) { return opened(syscall(SYS_pidfd_open, pid_in(pid), 0)); }
int signal_process(const std::string& pid) { return outcome(kill(pid_in(pid), 0)); }
int signal_thread(const std::string& pid) { return outcome(syscall(SYS_tgkill, pid_in(pid), pid_in(pid), 0)); }
int signal_queue(const std::string& pid) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  return outcome(syscall(SYS_rt_sigqueueinfo, pid_in(pid), 0, &info));
}

int fork_by(long child) {
  if (child == 0) _exit(0);
  if (child < 0) return errno;
  waitpid(static_cast<pid_t>(child), nullptr, 0);
  return 0;
}
int fork_process(const std::string&) { return fork_by(syscall(SYS_fork)); }
int clone_process(const std::string&) { return fork_by(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
int clone3_process(const std::string&) {
  std::uint64_t arguments[8] = {0, 0, 0, 0, SIGCHLD};
  return fork_by(syscall(SYS_clone3, arguments, sizeof arguments));
}

int execute(const std::string& program) {
  char* const arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  char* const environment[] = {nullptr};
  return outcome(execve(program.c_str(), arguments, environment));
}

// ---- ways out ------------------------------------------------------------------------------------------------------

int make_socket(const std::string& kind) {
  const int family = kind == "inet" ? AF_INET : kind == "inet6" ? AF_INET6 : kind == "netlink" ? AF_NETLINK : AF_UNIX;
  const int type = kind == "netlink"     ? SOCK_RAW
                   : kind == "seqpacket" ? SOCK_SEQPACKET
                   : kind == "dgram"     ? SOCK_DGRAM
                                         : SOCK_STREAM;
  return opened(socket(family, type, 0));
}

int make_socket_pair(const std::string&) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return errno;
  close(ends[0]);
  return opened(ends[1]);
}

// `name` begins with '@' for an abstract socket.
int connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + name.size() + (name[0] == '@' ? 0 : 1));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&address), length);
  const int why = errno;
  close(fd);
  return result != 0 ? why : 0;
}

int make_ring(const std::string&) {
  io_uring_params parameters{};
  return opened(syscall(SYS_io_uring_setup, 4, &parameters));
}

int share_by_name(const std::string& name) {
  const int fd = open(("/dev/shm/" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  return outcome(unlink(("/dev/shm/" + name).c_str()));
}

int share_by_key(const std::string&) {
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return errno;
  return outcome(shmctl(id, IPC_RMID, nullptr));
}

int make_pipe_file(const std::string& path) {
  if (mkfifo(path.c_str(), 0600) != 0) return errno;
  return outcome(unlink(path.c_str()));
}

// ---- code ----------------------------------------------------------------------------------------------------------

int map_code(const std::string&) {
  return mapped(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

int turn_into_code(const std::string&) {
  void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int result = mprotect(at, 4096, PROT_READ | PROT_EXEC) == 0 ? 0 : errno;
  munmap(at, 4096);
  return result;
}

int map_file_as_code(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int result = mapped(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), 4096);
  close(fd);
  return result;
}

int make_memory_file(const std::string&) { return opened(memfd_create("attempt", MFD_CLOEXEC)); }
int make_all_executable(const std::string&) {
  const int before = personality(0xffffffff);
  if (personality(static_cast<unsigned long>(before) | READ_IMPLIES_EXEC) < 0) return errno;
  return outcome(personality(static_cast<unsigned long>(before)));
}

// ---- rights and the kernel -----------------------------------------------------------------------------------------

int become_root(const std::string&) { return outcome(setresuid(0, 0, 0)); }
int be_dumpable(const std::string&) { return outcome(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); }
int outlive_broker(const std::string&) { return outcome(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)); }
int raise_limit(const std::string&) {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
  return outcome(setrlimit(RLIMIT_CORE, &limit));
}
int leave_namespace(const std::string&) { return outcome(unshare(CLONE_NEWUTS)); }
int enter_namespace(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int result = outcome(setns(fd, 0));
  if (fd >= 0) close(fd);
  return result;
}
int mount_folder(const std::string& path) {
  if (mount("none", path.c_str(), "tmpfs", 0, nullptr) != 0) return errno;
  return outcome(umount2(path.c_str(), MNT_DETACH));
}
int change_root(const std::string& path) {
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (chroot(path.c_str()) != 0) return errno;
  if (fchdir(root) != 0) return errno;
  close(root);
  return outcome(chroot("."));
}
int load_bpf(const std::string&) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = attributes.value_size = 4;
  attributes.max_entries = 1;
  return opened(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}
int watch_machine(const std::string&) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  return opened(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}
int catch_faults(const std::string&) { return opened(syscall(SYS_userfaultfd, O_CLOEXEC)); }
int read_keys(const std::string&) { return outcome(syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 0)); }
int read_kernel_log(const std::string&) { return outcome(syscall(SYS_syslog, 10 /* SIZE_BUFFER */, nullptr, 0)); }
int watch_files(const std::string&) { return opened(syscall(SYS_inotify_init1, O_CLOEXEC)); }
int be_urgent(const std::string&) { return outcome(setpriority(PRIO_PROCESS, 0, -5)); }
// Makes a device request. A request that passes the filter reaches a file that does not know it.
int request(const std::string& number) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int result = outcome(ioctl(fd, std::strtoul(number.c_str(), nullptr, 16), nullptr));
  close(fd);
  return result == ENOTTY ? 0 : result;
}
int type_for_terminal(const std::string&) { return outcome(ioctl(0, TIOCSTI, "x")); }

struct Attempt {
  const char* name;
  int (*make)(const std::string& argument);
};

constexpr Attempt attempts[] = {
    {"read", read_file},
    {"write", write_file},
    {"change", change_file},
    {"make", make_file},
    {"rename", rename_file},
    {"open-by-handle", open_by_handle},
    {"write-own-memory", write_own_memory},
    {"write-own-thread", write_own_thread},
    {"set-flags", set_flags},
    {"grow-the-slot", grow_the_slot},
    {"grow-in-place", grow_in_place},
    {"open-the-region", open_the_region},
    {"map-any-descriptor", map_any_descriptor},
    {"ptrace", trace},
    {"read-memory", read_memory},
    {"take-descriptor", take_descriptor},
    {"watch-process", watch_process},
    {"kill", signal_process},
    {"tgkill", signal_thread},
    {"sigqueue", signal_queue},
    {"fork", fork_process},
    {"clone", clone_process},
    {"clone3", clone3_process},
    {"execute", execute},
    {"socket", make_socket},
    {"socketpair", make_socket_pair},
    {"connect", connect_to},
    {"io_uring", make_ring},
    {"shm-name", share_by_name},
    {"shm-key", share_by_key},
    {"fifo", make_pipe_file},
    {"map-code", map_code},
    {"turn-into-code", turn_into_code},
    {"map-file-as-code", map_file_as_code},
    {"memfd", make_memory_file},
    {"personality", make_all_executable},
    {"setuid", become_root},
    {"dumpable", be_dumpable},
    {"pdeathsig", outlive_broker},
    {"raise-limit", raise_limit},
    {"unshare", leave_namespace},
    {"setns", enter_namespace},
    {"mount", mount_folder},
    {"chroot", change_root},
    {"bpf", load_bpf},
    {"perf", watch_machine},
    {"userfaultfd", catch_faults},
    {"keyctl", read_keys},
    {"syslog", read_kernel_log},
    {"inotify", watch_files},
    {"nice", be_urgent},
    {"ioctl", request},
    {"tiocsti", type_for_terminal},
};

// Returns the target without its number, "pipe" for "pipe:[1234]".
std::string kind_of(const std::string& target) {
  return target.substr(0, target.rfind("anon_inode", 0) == 0 ? target.size() : target.find(":["));
}

// Lists every open descriptor with its kind.
std::string descriptors() {
  std::ostringstream list;
  for (int fd = 0; fd < most_descriptors; ++fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) continue;
    list << fd << '=' << kind_of(target_of(fd)) << ' ';
  }
  return list.str();
}

}  // namespace

std::string attempt(const std::string& command) {
  const std::size_t space = command.find(' ');
  const std::string name = command.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : command.substr(space + 1);
  if (name == "pid") return std::to_string(getpid());
  if (name == "descriptors") return descriptors();
  for (const Attempt& a : attempts) {
    if (name != a.name) continue;
    const int error = a.make(argument);
    return error == 0 ? "done" : std::string("refused ") + strerrorname_np(error);
  }
  return "unknown";
}

}  // namespace misbehave
