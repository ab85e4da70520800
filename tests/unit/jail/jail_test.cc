// The jail, layer by layer: a child applies a layer and tries forbidden and required operations. If the machine does
// not have a layer's mechanism (a container without namespaces, a kernel without Landlock), the test is skipped with a
// message.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "host/jail/landlock.h"
#include "host/jail/namespaces.h"
#include "host/jail/privileges.h"
#include "host/jail/seccomp.h"
#include "host/jail/seccomp_policy.h"
#include "tests/child.h"
#include "tests/unit/jail/child.h"

namespace {

using namespace host::jail;

// `code`: 0, or the line of the check that failed in the child.
void expect_clean(int code) { EXPECT_EQ(code, 0) << "the check at line " << code - 1 << " (modulo 200) failed"; }

void expect_killed(int code) { EXPECT_EQ(code, -SIGSYS); }

bool machine_has_namespaces() {
  return run_in_child([] { return unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 ? 0 : 1; }) == 0;
}

bool machine_has_landlock() { return syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= 1; }

#define NEEDS(what) \
  if (!machine_has_##what()) GTEST_SKIP() << "this machine has no " #what

bool become_ordinary_user() {
  if (geteuid() != 0) return true;
  return setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 &&
         prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

TEST(Privileges, NoNewPrivilegesHoldsForGood) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    CHILD_EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == -1);
    return 0;
  }));
}

TEST(Privileges, LimitsCannotBeRaisedAgain) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(become_ordinary_user());
    CHILD_EXPECT(apply_limits(0).active());
    rlimit limit{};
    CHILD_EXPECT(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
    CHILD_EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max <= 2048);
    limit.rlim_max = limit.rlim_cur = 1 << 20;
    CHILD_EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == -1);
    return 0;
  }));
}

// The child uses a user that no other process has, because the kernel counts threads per user.
TEST(Privileges, ThreadsHaveABound) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_limits(8).active());
    CHILD_EXPECT(apply_user(7654, 7654).active());
    std::vector<std::thread> threads;
    std::atomic<bool> end{false};
    bool refused = false;
    try {
      while (threads.size() < 100)
        threads.emplace_back([&] {
          while (!end) usleep(1000);
        });
    } catch (const std::system_error& failed) {
      refused = failed.code().value() == EAGAIN;
    }
    const std::size_t started = threads.size();
    end = true;
    for (std::thread& thread : threads) thread.join();
    CHILD_EXPECT(refused);
    CHILD_EXPECT(started == 7);  // seven threads in addition to the first
    return 0;
  }));
}

TEST(Privileges, RootBecomesTheUserAndCannotGoBack) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_user(65534, 65534).active());
    CHILD_EXPECT(getuid() == 65534 && geteuid() == 65534 && getgid() == 65534);
    CHILD_EXPECT(getgroups(0, nullptr) == 0);
    CHILD_EXPECT(refused(setresuid(0, 0, 0), EPERM));
    CHILD_EXPECT(refused(open("/etc/shadow", O_RDONLY), EACCES));
    return 0;
  }));
}

TEST(Privileges, AnOrdinaryUserStaysWhoHeIs) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(become_ordinary_user());
    const uid_t before = getuid();
    CHILD_EXPECT(apply_user(12345, 12345).active());
    CHILD_EXPECT(getuid() == before);
    return 0;
  }));
}

int check_namespaces() {
  const Result result = apply_namespaces();
  if (!result.active()) fprintf(stderr, "namespaces: %s\n", result.missing.c_str());
  CHILD_EXPECT(result.active());
  CHILD_EXPECT(refused(open("/tmp/ivgpu-jail-test", O_CREAT | O_WRONLY, 0600), EROFS));
  const int comm = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
  CHILD_EXPECT(comm >= 0);
  const std::string own = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/comm";
  CHILD_EXPECT(open(own.c_str(), O_WRONLY) >= 0);
  const int out = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr any{};
  any.sa_family = AF_INET;
  any.sa_data[2] = 10;  // 10.x: an empty network has no route to this address
  any.sa_data[1] = 9;
  CHILD_EXPECT(out < 0 || refused(connect(out, &any, sizeof any), ENETUNREACH));
  return 0;
}

TEST(Namespaces, MountsAreReadOnlyAndTheNetworkIsEmpty) {
  NEEDS(namespaces);
  expect_clean(run_in_child(check_namespaces));
}

// One folder is a mount point, one becomes a mount point, and one does not exist. Other folders stay as they are.
int check_writable_folders() {
  const std::string kept = "/tmp/ivgpu-jail-kept-" + std::to_string(getpid()), file = kept + "/file";
  CHILD_EXPECT(mkdir(kept.c_str(), 0700) == 0);
  const Result result = apply_namespaces({"/dev/shm", kept, "/tmp/ivgpu-jail-nowhere"});
  if (!result.active()) fprintf(stderr, "namespaces: %s\n", result.missing.c_str());
  CHILD_EXPECT(result.active());
  const std::string shared = "/dev/shm/ivgpu-jail-" + std::to_string(getpid());
  CHILD_EXPECT(open(shared.c_str(), O_CREAT | O_RDWR, 0600) >= 0 && unlink(shared.c_str()) == 0);
  CHILD_EXPECT(open(file.c_str(), O_CREAT | O_RDWR, 0600) >= 0 && unlink(file.c_str()) == 0);
  CHILD_EXPECT(refused(open("/tmp/ivgpu-jail-test", O_CREAT | O_WRONLY, 0600), EROFS));
  return 0;
}

TEST(Namespaces, FoldersCanStayWritable) {
  NEEDS(namespaces);
  expect_clean(run_in_child(check_writable_folders));
  expect_clean(run_in_child([] {
    CHILD_EXPECT(become_ordinary_user());
    return check_writable_folders();
  }));
  for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
    if (entry.path().filename().string().starts_with("ivgpu-jail-kept-")) std::filesystem::remove(entry.path());
}

TEST(Namespaces, AnOrdinaryUserGetsThemToo) {
  NEEDS(namespaces);
  expect_clean(run_in_child([] {
    CHILD_EXPECT(become_ordinary_user());
    const uid_t before = getuid();
    const int line = check_namespaces();
    if (line != 0) return line;
    CHILD_EXPECT(getuid() == before);
    CHILD_EXPECT(apply_user(0, 0).active());
    CHILD_EXPECT(refused(sethostname("x", 1), EPERM));
    return 0;
  }));
}

TEST(Landlock, OnlyTheNamedFilesOpen) {
  NEEDS(landlock);
  char folder[] = "/tmp/ivgpu-jail-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string inside = std::string(folder) + "/allowed", outside = std::string(folder) + ".other";
  close(open(inside.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  close(open(outside.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  expect_clean(run_in_child([&] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    const Result result = apply_landlock({{folder}, {}});
    if (!result.active()) fprintf(stderr, "landlock: %s\n", result.missing.c_str());
    CHILD_EXPECT(result.active());
    CHILD_EXPECT(open(inside.c_str(), O_RDONLY) >= 0);
    CHILD_EXPECT(refused(open(inside.c_str(), O_RDWR), EACCES));
    CHILD_EXPECT(refused(open(outside.c_str(), O_RDONLY), EACCES));
    CHILD_EXPECT(refused(open((inside + "2").c_str(), O_CREAT | O_WRONLY, 0600), EACCES));
    CHILD_EXPECT(refused(unlink(inside.c_str()), EACCES));
    CHILD_EXPECT(refused(open("/root", O_RDONLY), EACCES));
    CHILD_EXPECT(open("/proc/self/status", O_RDONLY) >= 0);
    CHILD_EXPECT(open("/etc/ld.so.cache", O_RDONLY) >= 0);
    CHILD_EXPECT(refused(open("/etc/passwd", O_RDONLY), EACCES));
    CHILD_EXPECT(open("/dev/null", O_RDWR) >= 0);
    // A driver sets its threads' names through this file, and does not start if that fails.
    const std::string comm = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/comm";
    CHILD_EXPECT(fopen(comm.c_str(), "w") != nullptr);
    execl("/bin/true", "true", nullptr);
    CHILD_EXPECT(errno == EACCES);
    return 0;
  }));
  unlink(inside.c_str());
  unlink(outside.c_str());
  rmdir(folder);
}

TEST(Landlock, OnlyTheNamedDevicesOpen) {
  NEEDS(landlock);
  expect_clean(run_in_child([] {
    CHILD_EXPECT(open("/dev/full", O_RDWR) >= 0 && open("/dev/zero", O_RDWR) >= 0);
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_landlock({{}, {}, {"/dev/full", "/dev/not-there"}}).active());
    CHILD_EXPECT(open("/dev/full", O_RDWR) >= 0);
    CHILD_EXPECT(refused(open("/dev/zero", O_RDWR), EACCES));
    return 0;
  }));
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_landlock({}).active());
    CHILD_EXPECT(refused(open("/dev/full", O_RDWR), EACCES));
    return 0;
  }));
}

TEST(Landlock, SignalsAndAbstractSocketsStayInside) {
  NEEDS(landlock);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr address{AF_UNIX, {}};
  const std::string name = "ivgpu" + std::to_string(getpid() % 100000);
  memcpy(address.sa_data + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
  ASSERT_EQ(bind(listener, &address, length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  expect_clean(run_in_child([&] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_landlock({}).active());
    // On older kernels seccomp refuses both operations.
    if (syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) < 6) return 0;
    CHILD_EXPECT(refused(kill(getppid(), 0), EPERM));
    CHILD_EXPECT(refused(connect(socket(AF_UNIX, SOCK_STREAM, 0), &address, length), EPERM));
    return 0;
  }));
  close(listener);
}

TEST(Seccomp, ThreadsAndMemoryStillWork) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::None, 0).active());
    std::atomic<int> ran{0};
    std::thread([&] { ran = 1; }).join();
    CHILD_EXPECT(ran == 1);
    void* memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_EXPECT(memory != MAP_FAILED);
    CHILD_EXPECT(madvise(memory, 1 << 20, MADV_DONTNEED) == 0);
    CHILD_EXPECT(open("/proc/self/status", O_RDONLY) >= 0);
    CHILD_EXPECT(pthread_setname_np(pthread_self(), "channel") == 0);
    timespec brief{0, 1000};
    CHILD_EXPECT(nanosleep(&brief, nullptr) == 0);
    int ends[2];
    CHILD_EXPECT(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "x", 1) == 1);
    return 0;
  }));
}

TEST(Seccomp, WhatIsNotNamedIsRefused) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::None, 0).active());
    CHILD_EXPECT(refused(socket(AF_UNIX, SOCK_STREAM, 0), EPERM));
    // socket() is refused, even as an MPS client would call it
    CHILD_EXPECT(refused(socket(AF_UNIX, SOCK_SEQPACKET, 0), EPERM));
    CHILD_EXPECT(refused(connect(0, nullptr, 0), EPERM));
    const int on = 1;
    CHILD_EXPECT(refused(setsockopt(0, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), EPERM));
    CHILD_EXPECT(refused(kill(getppid(), 0), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_tgkill, getppid(), getppid(), 0), EPERM));
    CHILD_EXPECT(syscall(SYS_tgkill, getpid(), getpid(), 0) == 0);
    CHILD_EXPECT(refused(open("/dev/null", O_WRONLY), EPERM));
    CHILD_EXPECT(refused(open("/dev/null", O_RDWR), EPERM));
    CHILD_EXPECT(refused(open("/tmp/ivgpu-seccomp", O_CREAT | O_RDONLY, 0600), EPERM));
    CHILD_EXPECT(refused(unlink("/tmp/ivgpu-seccomp"), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_fork), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_clone3, nullptr, 0), ENOSYS));
    void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_EXPECT(code == MAP_FAILED && errno == EPERM);
    void* data = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_EXPECT(refused(mprotect(data, 4096, PROT_READ | PROT_EXEC), EPERM));
    rlimit limit{};
    CHILD_EXPECT(getrlimit(RLIMIT_STACK, &limit) == 0 && refused(setrlimit(RLIMIT_STACK, &limit), EPERM));
    CHILD_EXPECT(refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_ioctl, 0, 0x5412, nullptr), EPERM));
    return 0;
  }));
}

// A shared mapping that grows would contain further pages of the file; in a region, these belong to another session.
TEST(Seccomp, MappingsMoveButNeverGrow) {
  expect_clean(run_in_child([] {
    constexpr std::size_t mine = 8 << 12;
    const int file = memfd_create("region", MFD_CLOEXEC);
    CHILD_EXPECT(ftruncate(file, 4 * mine) == 0);
    void* at = mmap(nullptr, mine, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void* other = mmap(nullptr, mine, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_EXPECT(at != MAP_FAILED && other != MAP_FAILED);
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::None, mine).active());
    CHILD_EXPECT(mremap(at, mine, 2 * mine, MREMAP_MAYMOVE) == MAP_FAILED && errno == EPERM);
    CHILD_EXPECT(mremap(at, 0, mine, MREMAP_MAYMOVE) == MAP_FAILED && errno == EPERM);
    CHILD_EXPECT(mremap(at, mine / 2, mine, MREMAP_MAYMOVE | MREMAP_FIXED, other) == MAP_FAILED && errno == EPERM);
    CHILD_EXPECT(mremap(at, mine, mine, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
    void* big = realloc(malloc(1 << 20), 64 << 20);  // copies the memory if it cannot move it
    CHILD_EXPECT(big != nullptr);
    return 0;
  }));
}

TEST(Seccomp, DeviceFilesOpenOnlyForADriverThatHasThem) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::Listed, 0).active());
    CHILD_EXPECT(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
    CHILD_EXPECT(refused(open("/tmp/ivgpu-seccomp", O_CREAT | O_RDWR, 0600), EPERM));
    CHILD_EXPECT(refused(open("/dev/null", O_RDWR | O_TRUNC), EPERM));
    CHILD_EXPECT(refused(syscall(SYS_ioctl, 0, 0x5412, nullptr), EPERM));  // the request is TIOCSTI
    // ENOTTY shows that the filter allows the request
    CHILD_EXPECT(refused(syscall(SYS_ioctl, 0, 0xc020462aU, nullptr), ENOTTY));
    return 0;
  }));
}

// Returns whether the filter allows a request: the request then reaches /dev/null, which rejects it.
bool passes(unsigned long request) { return refused(syscall(SYS_ioctl, 0, request, nullptr), ENOTTY); }
bool stopped(unsigned long request) { return refused(syscall(SYS_ioctl, 0, request, nullptr), EPERM); }

bool null_is_standard_input() { return dup2(open("/dev/null", O_RDWR), 0) == 0; }

TEST(Seccomp, RequestsArePassedByTheirWholeNumber) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(null_is_standard_input() && apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::Listed, 0).active());
    CHILD_EXPECT(list_in_force());
    for (const Request& request : listed_requests) {
      CHILD_EXPECT(passes(request.number));
      // The sign-extended number, of which the kernel reads only 32 bits.
      CHILD_EXPECT(passes(request.number | 0xffffffff00000000UL));
      CHILD_EXPECT(is_listed(request.number ^ 0x100) || stopped(request.number ^ 0x100));  // another class of request
      // Another size of the argument.
      CHILD_EXPECT(is_listed(request.number ^ 0x10000) || stopped(request.number ^ 0x10000));
    }
    return 0;
  }));
}

TEST(Seccomp, RequestsThatAreNotListedAreRefused) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(null_is_standard_input() && apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::Listed, 0).active());
    std::uint32_t passed = 0;
    for (std::uint32_t number = 0; number < 0x100; ++number) {
      passed += passes(number) ? 1 : 0;  // requests of unified memory
      for (std::uint32_t size = 0; size <= 64; size += 4) passed += passes(0xc0004600 | size << 16 | number) ? 1 : 0;
    }
    CHILD_EXPECT(passed == std::size(listed_requests));
    CHILD_EXPECT(stopped(0xc01046d3));                         // NV_ESC_IOCTL_XFER_CMD, which wraps another request
    CHILD_EXPECT(stopped(0x30000001) && stopped(0x30000002));  // UVM_INITIALIZE and UVM_DEINITIALIZE
    CHILD_EXPECT(stopped(0xc0306d00) && stopped(0xc0106400));  // requests of modesetting and DRM
    CHILD_EXPECT(stopped(0x3b64) && stopped(0xae01));          // requests of VFIO and KVM
    // Requests of a terminal, of any file, and of a socket.
    CHILD_EXPECT(stopped(0x5412) && stopped(0x5421) && stopped(0x8901));
    return 0;
  }));
}

TEST(Seccomp, WithoutDeviceFilesNoRequestPasses) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(null_is_standard_input() && apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::None, 0).active());
    for (const Request& request : listed_requests) CHILD_EXPECT(stopped(request.number));
    CHILD_EXPECT(refused(open("/dev/null", O_RDWR | O_CLOEXEC), EPERM));
    return 0;
  }));
}

TEST(Seccomp, AnyRequestPassesWhereTheOperatorWantsIt) {
  expect_clean(run_in_child([] {
    CHILD_EXPECT(null_is_standard_input() && apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::Any, 0).active());
    CHILD_EXPECT(!list_in_force());
    for (const unsigned long request : {0xc020462aUL, 0xc0004600UL, 0x30000001UL, 0x4bUL})
      CHILD_EXPECT(passes(request));
    return 0;
  }));
}

TEST(Ioctls, TheListIsOneDriversAndOthersGetAnyAndAWarning) {
  const auto choose = [](bool devices, bool any, const char* driver, unsigned gpus = 1) {
    return choose_requests(devices, any, driver, gpus);
  };
  EXPECT_EQ(choose(false, false, "").requests, Requests::None);
  EXPECT_EQ(choose(false, true, "1.2").requests, Requests::None);
  const std::string recorded(recorded_driver);
  EXPECT_EQ(choose(true, false, recorded.c_str()).requests, Requests::Listed);
  EXPECT_EQ(choose(true, false, recorded.c_str()).missing, "");
  EXPECT_EQ(choose(true, false, "").requests, Requests::Listed) << "a module that tells no version";
  EXPECT_EQ(choose(true, true, recorded.c_str()).requests, Requests::Any);
  EXPECT_EQ(choose(true, true, "600.1").missing, "");
  EXPECT_EQ(choose(true, false, recorded.c_str(), recorded_gpus).requests, Requests::Listed);
  const Choice several = choose(true, false, recorded.c_str(), recorded_gpus + 1);
  EXPECT_EQ(several.requests, Requests::Any) << "a context on each of them is made in the finished jail";
  EXPECT_NE(several.missing.find("a list of what so many GPUs in one session need"), std::string::npos);
  EXPECT_EQ(choose(true, true, recorded.c_str(), recorded_gpus + 1).missing, "");
  const Choice other = choose(true, false, "600.1");
  EXPECT_EQ(other.requests, Requests::Any);
  EXPECT_NE(other.missing.find("this is 600.1: run tools/dev/record-ioctls, or set jail_ioctls"), std::string::npos);
}

TEST(Ioctls, TheKernelModuleReportsItsVersion) {
  char name[] = "/tmp/ivgpu-version-XXXXXX";
  const int fd = mkstemp(name);
  for (const auto& [line, version] :
       {std::pair("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (a@b)",
                  "580.159.04"),
        std::pair("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54  Thu Jun  8", "535.54"),
        std::pair("nonsense", ""), std::pair("", "")}) {
    ASSERT_EQ(ftruncate(fd, 0), 0);
    ASSERT_EQ(pwrite(fd, line, std::strlen(line), 0), static_cast<ssize_t>(std::strlen(line)));
    EXPECT_EQ(kernel_driver(name), version);
  }
  close(fd);
  unlink(name);
  EXPECT_EQ(kernel_driver("/no/such/file"), "");
}

TEST(Seccomp, AttackersCallsEndTheProcess) {
  const auto with_filter = [](const std::function<void()>& call) {
    return run_in_child([&] {
      CHILD_EXPECT(apply_no_new_privileges().active());
      CHILD_EXPECT(apply_seccomp(Requests::Listed, 0).active());
      call();
      return 250;
    });
  };
  expect_killed(with_filter([] { execl("/bin/true", "true", nullptr); }));
  expect_killed(with_filter([] { ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }));
  expect_killed(with_filter([] { syscall(SYS_io_uring_setup, 1, nullptr); }));
  expect_killed(with_filter([] { syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr); }));
  expect_killed(with_filter([] { unshare(CLONE_NEWUSER); }));
}

TEST(Seccomp, ThreadsThatWereThereBeforeAreBoundToo) {
  expect_killed(run_in_child([] {
    std::atomic<bool> go{false};
    std::thread older([&] {
      while (!go) std::this_thread::yield();
      execl("/bin/true", "true", nullptr);
    });
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::None, 0).active());
    go = true;
    older.join();
    return 0;
  }));
}

TEST(Seccomp, EveryRuleHasItsReason) {
  for (const Rule& rule : policy) EXPECT_FALSE(rule.why.empty()) << rule.call;
}

TEST(Jail, AllLayersTogetherInTheirOrder) {
  NEEDS(namespaces);
  NEEDS(landlock);
  const bool started_as_root = geteuid() == 0;
  expect_clean(run_in_child([&] {
    CHILD_EXPECT(apply_namespaces().active());
    CHILD_EXPECT(apply_limits(0).active());
    CHILD_EXPECT(apply_user(65534, 65534).active());
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_landlock({}).active());
    CHILD_EXPECT(apply_seccomp(Requests::None, 0).active());
    std::atomic<int> ran{0};
    std::thread([&] { ran = 1; }).join();
    CHILD_EXPECT(ran == 1);
    CHILD_EXPECT(open("/proc/self/status", O_RDONLY) >= 0);
    // Without root the command lines of other processes stay readable, but nothing else does.
    const std::string parent = "/proc/" + std::to_string(getppid());
    CHILD_EXPECT(!started_as_root || refused(open((parent + "/cmdline").c_str(), O_RDONLY), ENOENT));
    CHILD_EXPECT(open((parent + "/environ").c_str(), O_RDONLY) == -1);
    CHILD_EXPECT(refused(open("/etc/passwd", O_RDONLY), EACCES));
    CHILD_EXPECT(refused(open("/usr/bin/env", O_RDONLY), EACCES));
    return 0;
  }));
}

}  // namespace
