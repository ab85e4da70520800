// Tests the jail from inside: a real ivgpud and real workers, whose driver library does what a subverted worker would
// do. Every attempt must be refused with all layers, and with any single layer missing, unless the table states that
// this layer alone refuses it. Without a jail the attempts must succeed, since otherwise the test would prove nothing.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstddef>
#include <utility>

#include "tests/unit/broker/mps_harness.h"

namespace {

using namespace broker_test;

struct Wish {
  // %s: a file that every user may read; %p: a file only for its owner; %d: a folder; %b, %o: the broker's process and
  // another worker's.
  const char* command;
  // The layer that alone refuses the attempt: S seccomp, L Landlock, N namespaces; "R": if the broker is root; "M": if
  // the worker is no client of MPS.
  const char* alone;
  bool works_without;  // whether the attempt succeeds without a jail; if not, the machine may refuse it
};

constexpr Wish wishes[] = {
    {"read %s", "L", true},
    {"read %p", "", true},
    {"write %s", "", true},
    {"change %s", "", true},
    {"make %d/new", "", true},
    {"rename %s", "", true},
    {"fifo %d/fifo", "", true},
    {"open-by-handle %s", "", true},
    {"read /etc/passwd", "L", true},
    {"read /etc/shadow", "", true},
    {"read /root", "", true},
    {"write-own-memory /proc/self/mem", "", true},
    {"write-own-thread", "", true},
    {"set-flags wait", "S", true},
    {"set-flags append", "S", true},
    {"write /proc/self/oom_score_adj", "", true},
    {"write /proc/sys/kernel/core_pattern", "", false},
    {"grow-the-slot", "S", true},
    {"grow-in-place", "S", false},
    {"open-the-region", "", true},
    {"read /proc/%b/environ", "", true},
    {"read /proc/%b/maps", "", true},
    {"read /proc/%b/mem", "", false},
    {"read /proc/%b/fd/2", "", true},
    {"write /proc/%b/fd/2", "", true},
    {"read /proc/%b/cmdline", "NR", true},
    {"read /proc/%o/environ", "", true},
    {"read /proc/%o/maps", "", true},
    {"read /proc/%o/fd/0", "", true},
    {"write /proc/%o/fd/1", "", true},
    {"read /proc/%o/cmdline", "NR", true},
    {"map-any-descriptor", "", false},
    {"ptrace %o", "", true},
    {"ptrace %b", "", true},
    {"read-memory %o", "", true},
    {"take-descriptor %b", "", true},
    {"watch-process %o", "S", true},
    {"kill %b", "", true},
    {"kill %o", "", true},
    {"tgkill %b", "", true},
    {"sigqueue %b", "", true},
    {"fork", "S", true},
    {"clone", "S", true},
    {"clone3", "S", true},
    {"execute /bin/true", "", true},
    {"socket inet", "S", true},
    {"socket inet6", "S", true},
    {"socket netlink", "S", true},
    {"socket unix", "S", true},
    {"socket seqpacket", "SM", true},
    {"socket dgram", "S", true},
    {"socketpair", "S", true},
    {"connect %a", "", true},
    {"connect %d/t.sock", "", true},
    {"io_uring", "S", true},
    {"shm-name ivgpu-jail-test", "", true},
    {"shm-key", "S", true},
    {"map-code", "S", true},
    {"turn-into-code", "S", true},
    {"map-file-as-code /usr/lib/x86_64-linux-gnu/libc.so.6", "S", true},
    {"memfd", "S", true},
    {"personality", "S", true},
    {"setuid", "", true},
    {"dumpable", "S", true},
    {"pdeathsig", "S", true},
    {"raise-limit", "", true},
    {"unshare", "", true},
    {"setns /proc/self/ns/uts", "", true},
    {"mount %d", "", true},
    {"chroot %d", "", true},
    {"bpf", "", false},
    {"perf", "", false},
    {"userfaultfd", "", false},
    {"keyctl", "S", false},
    {"syslog", "", false},
    {"inotify", "S", true},
    {"nice", "", true},
    {"ioctl 0xc01046d3", "S", true},  // NV_ESC_IOCTL_XFER_CMD
    {"ioctl 0x30000001", "S", true},  // UVM_INITIALIZE
    {"ioctl 0x38", "S", true},        // UVM_TOOLS_INIT_EVENT_TRACKER
    {"ioctl 0xc0306d00", "S", true},  // modesetting
    {"ioctl 0xc0106400", "S", true},  // DRM
    {"ioctl 0xae01", "S", true},      // KVM
    {"ioctl 0x3b64", "S", true},      // VFIO
    {"ioctl 0x8910", "S", true},      // a request of network interfaces
    {"ioctl 0x5451", "S", true},      // a request of any file
    {"tiocsti", "", false},
};

// A guest program on the misbehaving driver. It passes commands to the driver, and prints the results.
class Inside {
 public:
  Inside(const Broker& broker, const std::string& region) : broker_(broker), region_(region) {}
  ~Inside() { leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // Returns "done", "refused ERRNO", or "killed" with the worker's end.
  std::string attempt(const std::string& command) {
    if (pid_ <= 0) enter();
    const Ends before = ends_of_workers(broker_, vm());
    const std::string line = command + "\n";
    EXPECT_EQ(write(to_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    const std::string answer = read_line();
    if (answer.rfind("lost", 0) != 0) return answer;
    leave();
    Ends now;
    const auto has_ended = [&] { return (now = ends_of_workers(broker_, vm())).all > before.all; };
    if (!eventually(has_ended)) return "lost, and it still runs";
    const bool by_filter = now.last_signal.find("killed by signal 31 (SYS)") != std::string::npos;
    return now.signals > before.signals && by_filter ? "killed" : "done: it has ended";
  }

 private:
  std::string vm() const { return std::filesystem::path(region_).stem(); }

  void enter() {
    int in[2], out[2];
    ASSERT_TRUE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      setenv("IVGPU_REGION", region_.c_str(), 1);
      execl(PROGRAM, PROGRAM, GUEST_CUDA, nullptr);
      _exit(126);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  void leave() {
    if (pid_ <= 0) return;
    close(to_);
    close(from_);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::string read_line() {
    std::string line;
    pollfd wait{from_, POLLIN, 0};
    for (char c; poll(&wait, 1, deadline_ms) == 1 && read(from_, &c, 1) == 1;) {
      if (c == '\n') return line;
      line += c;
    }
    return "nothing but '" + line + "'";
  }

  const Broker& broker_;
  const std::string region_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

// A listening socket with an abstract name, which the whole machine can see.
class AbstractSocket {
 public:
  AbstractSocket() : name_("@ivgpu-jail-" + std::to_string(getpid())), fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path);
    address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + name_.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~AbstractSocket() { close(fd_); }
  AbstractSocket(const AbstractSocket&) = delete;
  AbstractSocket& operator=(const AbstractSocket&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int fd_;
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// A spare worker whose jail is complete. Without Landlock, another process of the same user may inspect a worker before
// that.
pid_t spare_worker(const Broker& broker, const Client& watcher, pid_t own) {
  pid_t spare = 0;
  eventually([&] {
    if (watcher.count(ring::SlotState::Ready) != 1 || watcher.count(ring::SlotState::Starting) != 0) return false;
    for (const pid_t worker : broker.workers())
      if (worker != own) spare = worker;
    return spare != 0;
  });
  return spare;
}

// The results of all attempts, made with one broker.
std::vector<std::string> outcomes(const std::string& jail, const std::function<void()>& before,
                                  const std::string& vm_keys = "", const std::string& gpu_keys = "") {
  Broker broker("starts_per_second = 1000\nstart_burst = 1000\njail = \"" + jail + "\"\n" + vm_keys, "", before, DRIVER,
                "", gpu_keys);
  const AbstractSocket listener;
  const std::string secret = broker.folder.write("secret", "a guest's"),
                    hidden = broker.folder.write("hidden", "root's");
  chmod(secret.c_str(), 0644);
  chmod(hidden.c_str(), 0600);
  Client watcher(broker.socket_path());
  if (!watcher.greet(3)) return {};
  Inside inside(broker, broker.socket_path());
  std::vector<std::string> all;
  for (const Wish& wish : wishes) {
    const auto own = static_cast<pid_t>(std::atol(inside.attempt("pid").c_str()));
    std::string command = replaced(wish.command, "%s", secret);
    command = replaced(command, "%p", hidden);
    command = replaced(command, "%d", broker.folder.path());
    command = replaced(command, "%a", listener.name());
    command = replaced(command, "%b", std::to_string(broker.pid));
    command = replaced(command, "%o", std::to_string(spare_worker(broker, watcher, own)));
    all.push_back(inside.attempt(command));
  }
  broker.terminate();  // a killed broker would leave its MPS daemon running
  return all;
}

bool refused(const std::string& outcome) { return outcome.rfind("refused", 0) == 0 || outcome == "killed"; }

// `missing`: the letter of the missing layer; '-' if no layer is missing.
void expect_refusals(char missing, const std::function<void()>& before) {
  const std::vector<std::string> all = outcomes("best-effort", before);
  ASSERT_EQ(all.size(), std::size(wishes));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool falls = std::strchr(wishes[i].alone, missing) != nullptr;
    EXPECT_EQ(refused(all[i]), !falls) << wishes[i].command << ": " << all[i];
  }
}

// Same for a client of MPS.
void expect_refusals_of_a_client(char missing, const std::function<void()>& before) {
  const Control control;
  const std::vector<std::string> all = outcomes("best-effort", before, "gpus = [1]", mps_keys(control));
  ASSERT_EQ(all.size(), std::size(wishes));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool falls = std::strchr(wishes[i].alone, missing) != nullptr || std::strchr(wishes[i].alone, 'M') != nullptr;
    EXPECT_EQ(refused(all[i]), !falls) << wishes[i].command << ": " << all[i];
  }
}

void nothing_missing() {}

std::string fmt_hex(int number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

TEST(JailHolds, WithAllLayersEverythingIsRefused) { expect_refusals('-', nothing_missing); }

TEST(JailHolds, WithoutSeccomp) {
  expect_refusals('S', [] { take_away(SYS_seccomp); });
}

TEST(JailHolds, WithoutLandlock) {
  expect_refusals('L', [] { take_away(SYS_landlock_create_ruleset); });
}

TEST(JailHolds, WithoutNamespaces) {
  expect_refusals('N', [] { take_away(SYS_unshare); });
}

TEST(JailHolds, WithoutTheChangeOfUser) {
  expect_refusals('U', [] { take_away(SYS_setresuid); });
}

TEST(JailHolds, WhereTheBrokerIsNotRoot) {
  expect_refusals('R', [] {
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)) _exit(124);
  });
}

// cuCtxCreate needs this use of F_SETFL (an H200, driver 580.159.04).
TEST(JailHolds, ADescriptorMayStopWaiting) {
  Broker broker("jail = \"required\"\n", "", nothing_missing, DRIVER);
  Inside inside(broker, broker.socket_path());
  EXPECT_EQ(inside.attempt("set-flags go-on"), "done");
}

// Makes a /dev that seems to contain NVIDIA's control device. A worker may then open files for writing and control
// them, as far as seccomp permits.
void make_device_files() {
  bool made = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  const int null = open("/dev/null", O_PATH | O_CLOEXEC), urandom = open("/dev/urandom", O_PATH | O_CLOEXEC);
  made = made && mount("none", "/dev", "tmpfs", 0, "mode=755") == 0;
  for (const auto& [name, from] : {std::pair("/dev/null", null), {"/dev/urandom", urandom}, {"/dev/nvidiactl", null}}) {
    close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    made = made && mount(("/proc/self/fd/" + std::to_string(from)).c_str(), name, nullptr, MS_BIND, nullptr) == 0;
  }
  if (!made) _exit(124);
}

TEST(JailHolds, ForADriverWithDeviceFilesToo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  {
    Broker broker("", "", make_device_files, DRIVER);
    Inside inside(broker, broker.socket_path());
    EXPECT_EQ(inside.attempt("change /dev/nvidiactl"), "done");
  }
  expect_refusals('-', make_device_files);
}

// Makes a machine with two GPUs, as far as files show: /dev with a node per GPU, and the kernel's information about the
// GPUs. Their UUIDs are those of two simulated GPUs, which serve the test. Each node is a separate file rather than
// another name of /dev/null, since Landlock could not distinguish the names. The second GPU by address has the lower
// number.
void make_two_gpus(const std::string& folder) {
  make_device_files();
  const auto gpu = [&](const char* pci, int minor, int number) {
    const std::string place = folder + "/driver/nvidia/gpus/" + pci;
    std::filesystem::create_directories(place);
    std::ofstream(place + "/information")
        << "Model: \t\t a GPU\nGPU UUID: \t GPU-69766770-752d-7369-6d00-00000000000" << number << "\nBus Location: \t "
        << pci << "\nDevice Minor: \t " << minor << "\n";
  };
  gpu("0000:19:00.0", 1, 1);
  gpu("0000:3b:00.0", 0, 2);
  bool made = mount((folder + "/driver").c_str(), "/proc/driver", nullptr, MS_BIND, nullptr) == 0;
  made = made && mkdir("/dev/nvidia-caps", 0755) == 0;
  umask(0);
  for (const char* node :
       {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm", "/dev/nvidia-modeset", "/dev/nvidia-caps/nvidia-cap1"})
    made = made && mknod(node, S_IFCHR | 0666, makedev(1, 3)) == 0;
  umask(022);
  setenv("IVGPU_SIM_DEVICES", "2", 1);
  if (!made) _exit(124);
}

struct Opened {
  const char* node;
  bool by_one, by_all;  // opened by the workers of a VM that has the second GPU, and of a VM that has both
};

constexpr Opened opened[] = {{"/dev/nvidiactl", true, true},       {"/dev/nvidia-uvm", true, true},
                             {"/dev/nvidia0", true, true},         {"/dev/nvidia1", false, true},
                             {"/dev/../dev/nvidia1", false, true}, {"/proc/self/root/dev/nvidia1", false, true},
                             {"/dev/nvidia-modeset", false, true}, {"/dev/nvidia-caps/nvidia-cap1", false, true}};

TEST(JailHolds, ForTheDeviceFilesOfOtherVmsGpus) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  const Broker broker(
      "jail = \"required\"\ngpus = [1]\n[vm.all]\njail = \"required\"", "", [&] { make_two_gpus(machine.path()); },
      DRIVER);
  ASSERT_TRUE(
      broker.eventually_logged("t: its guests see GPU 1 (GPU-69766770-752d-7369-6d00-000000000002, 0000:3b:00.0)"));
  Inside one(broker, broker.folder / "t.sock"), all(broker, broker.folder / "all.sock");
  for (const Opened& attempt : opened) {
    for (const std::string how : {"read ", "change "}) {
      EXPECT_EQ(one.attempt(how + attempt.node), attempt.by_one ? "done" : "refused EACCES") << how << attempt.node;
      EXPECT_EQ(all.attempt(how + attempt.node), attempt.by_all ? "done" : "refused EACCES") << how << attempt.node;
    }
  }
}

// Only Landlock refuses these files. A machine without Landlock reports that, and a guest sees the same GPUs in both
// cases.
TEST(JailHolds, WithoutLandlockTheDeviceFilesOfOthersAreOpen) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  const Broker broker(
      "gpus = [1]", "",
      [&] {
        make_two_gpus(machine.path());
        take_away(SYS_landlock_create_ruleset);
      },
      DRIVER);
  Inside one(broker, broker.socket_path());
  EXPECT_EQ(one.attempt("change /dev/nvidia1"), "done");
  EXPECT_TRUE(broker.eventually_logged("t: the workers' jail is incomplete: landlock"));
}

TEST(JailHolds, ForAClientOfMpsToo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  expect_refusals_of_a_client('-', [&] { make_two_gpus(machine.path()); });
}

// The worker may open files only for writing, so that each layer below the filter is tested separately.
TEST(JailHolds, ForAClientOfMpsWithoutLandlock) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  expect_refusals_of_a_client('L', [&] {
    make_two_gpus(machine.path());
    take_away(SYS_landlock_create_ruleset);
  });
}

TEST(JailHolds, ForAClientOfMpsWithoutNamespaces) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  expect_refusals_of_a_client('N', [&] {
    make_two_gpus(machine.path());
    take_away(SYS_unshare);
  });
}

TEST(JailHolds, AClientOfMpsAnswersNoCallOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  const Folder machine;
  const Control control;
  Broker broker(
      "gpus = [1]", "", [&] { make_two_gpus(machine.path()); }, DRIVER, "", mps_keys(control));
  Inside inside(broker, broker.socket_path());
  const std::string held = inside.attempt("descriptors");
  EXPECT_EQ(held.find("seccomp"), std::string::npos) << held;
  const std::string listened = run_program("/bin/sh", {"-c", "ls -l /proc/" + std::to_string(broker.pid) + "/fd"}).text;
  EXPECT_NE(listened.find("anon_inode:seccomp notify"), std::string::npos) << listened;
  broker.terminate();
}

TEST(JailHolds, ListedRequestsPassAndOthersAreReportedByNumber) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  Broker broker("", "", make_device_files, DRIVER);
  Inside inside(broker, broker.socket_path());
  EXPECT_EQ(inside.attempt("ioctl 0xc020462a"), "done") << "NV_ESC_RM_CONTROL";
  EXPECT_EQ(inside.attempt("ioctl 0x21"), "done") << "UVM_MAP_EXTERNAL_ALLOCATION";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(inside.attempt("ioctl 0xc01046d3"), "refused EPERM");
  EXPECT_EQ(inside.attempt("ioctl 0x38"), "refused EPERM");
  EXPECT_TRUE(broker.eventually_logged("the jail refused ioctl 0x00000038 of /dev/null"));
  EXPECT_EQ(broker.times_logged("the jail refused ioctl 0xc01046d3 of /dev/null, which is not in its list"), 1U);
  EXPECT_EQ(broker.times_logged("the jail refused ioctl"), 2U);
  // A worker that tries one number after another must not fill the log.
  for (int number = 0x80; number < 0x100; ++number) inside.attempt("ioctl " + fmt_hex(number));
  EXPECT_TRUE(broker.eventually_logged("the jail refused ioctl 0x0000009d"));
  EXPECT_EQ(broker.times_logged("the jail refused ioctl"), 32U);
}

TEST(JailHolds, AnyRequestPassesWhereTheOperatorAllowsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a /dev of its own";
  Broker broker("jail_ioctls = \"any\"", "", make_device_files, DRIVER);
  Inside inside(broker, broker.socket_path());
  EXPECT_EQ(inside.attempt("ioctl 0xc01046d3"), "done");
  EXPECT_FALSE(broker.logged("the jail refused ioctl"));
  EXPECT_EQ(broker.times_logged("t: jail_ioctls = \"any\": its workers may make every request"), 1U);
}

// A kernel on such a GPU could access the worker's memory.
TEST(JailHolds, AGpuThatReachesAllMemoryIsReportedAndNotServedWhereTheJailIsRequired) {
  const auto with_hmm = [] { setenv("IVGPU_SIM_HMM", "1", 1); };
  const std::string what = "memory out of kernels' reach (GPU 0 has HMM: load nvidia_uvm with uvm_disable_hmm=1)";
  {
    Broker broker("", "", with_hmm, DRIVER);
    EXPECT_TRUE(broker.eventually_logged("the workers' jail is incomplete: " + what));
  }
  Broker broker("jail = \"required\"", "", with_hmm, DRIVER);
  EXPECT_TRUE(broker.eventually_logged("exited with code 5 (the jail is incomplete): the jail is required, but this"));
  EXPECT_TRUE(broker.eventually_logged(what));
}

// Checks that the attempts themselves are valid.
TEST(JailHolds, WithoutAJailTheAttemptsWork) {
  const std::vector<std::string> all = outcomes("off", nothing_missing);
  ASSERT_EQ(all.size(), std::size(wishes));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(!wishes[i].works_without || all[i].rfind("done", 0) == 0) << wishes[i].command << ": " << all[i];
  }
}

TEST(JailHolds, AWorkerHoldsItsDescriptorsAndNoMore) {
  Broker broker("", "", nothing_missing, DRIVER);
  Inside inside(broker, broker.socket_path());
  // The descriptors are: an empty input; twice the worker's output; the broker's socket; the worker's doorbell; the
  // simulated GPU's memory; the doorbell of the scheduler; the guest's interrupt.
  EXPECT_EQ(inside.attempt("descriptors"),
            "0=/dev/null 1=pipe 2=pipe 3=socket 5=anon_inode:[eventfd] 6=/memfd:ivgpu-simulated-memory (deleted) "
            "10=anon_inode:[eventfd] 11=anon_inode:[eventfd] ");
}

}  // namespace
