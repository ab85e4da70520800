// An ivgpud in its own folder, and a client of its sockets. All tests of the broker's process use this file.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ring/layout/layout.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/other_side.h"

namespace broker_test {

// test_deadline in milliseconds, for poll().
constexpr int deadline_ms = static_cast<int>(std::chrono::milliseconds(test_deadline).count());

inline bool eventually(const std::function<bool()>& condition) { return before_deadline(condition); }

// Seconds since `begin`. A test of a rate reads the time after it has counted, so that load can only widen the bound.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "ivgpud-test-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms::all);  // workers run as another user
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(*this / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

// Makes a system call fail in this process and its children, as on a kernel that lacks the call.
inline void take_away(unsigned call) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(125);
}

struct Outcome {
  int code;
  std::string text;  // stdout and stderr
};

// Runs a program until it exits.
inline Outcome run_program(const char* program, const std::vector<std::string>& arguments) {
  const ChildOutput output = output_of_child([&] {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::vector<const char*> argv = {program};
    for (const std::string& a : arguments) argv.push_back(a.c_str());
    argv.push_back(nullptr);
    execv(program, const_cast<char* const*>(argv.data()));
    return 126;
  });
  return {output.code, output.errors};
}

inline Outcome run_ivgpud(const std::vector<std::string>& arguments) { return run_program(IVGPUD, arguments); }

// A running ivgpud with one VM, "t", and the workers of FAKE_WORKER.
class Broker {
 public:
  // `before` runs in the child before it becomes ivgpud. `library`: the driver; by default an empty file, since fake
  // workers load no driver. `keys`: keys of the table [broker]; `gpu_keys`: keys of [gpu]. Unless `keys` sets outlive_s,
  // workers outlive the broker for as long as the configuration allows, on however busy a machine.
  explicit Broker(
      const std::string& vm_keys = "", const std::string& fake = "", const std::function<void()>& before = [] {},
      const std::string& library = "", const std::string& keys = "", const std::string& gpu_keys = "",
      const std::string& worker = FAKE_WORKER)
      : fake_(fake) {
    folder.write("libcuda.so.1", "");
    folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() + "\"\nlog_level = \"debug\"\nworker = \"" +
                               worker + "\"\n" + (keys.find("outlive_s") == keys.npos ? "outlive_s = 60\n" : "") +
                               keys + "\n[gpu]\nlibrary = \"" + (library.empty() ? folder / "libcuda.so.1" : library) +
                               "\"\n" + gpu_keys + "\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\n[vm.t]\n" +
                               vm_keys + "\n");
    start(before);
  }
  // Starts the next broker in the same folder. Precondition: the last broker has exited.
  void again(const std::function<void()>& before = [] {}) {
    let_go();
    ready.clear();
    reaped_ = false;
    start(before);
  }
  ~Broker() {
    let_go();
    if (pid > 0 && !reaped_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (::testing::Test::HasFailure()) fprintf(stderr, "---- ivgpud's log\n%s----\n", log().c_str());
  }
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  std::string socket_path() const { return folder / "t.sock"; }
  std::string log() const { return folder.read("log"); }
  bool logged(const std::string& text) const { return log().find(text) != std::string::npos; }
  bool eventually_logged(const std::string& text) const {
    return eventually([&] { return logged(text); });
  }
  std::size_t times_logged(const std::string& text) const {
    const std::string all = log();
    std::size_t times = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++times;
    return times;
  }
  // Changes the configuration file. The broker reads the file at its start and at a reload.
  void change_file(const std::string& from, const std::string& to) const {
    std::string text = folder.read("c.toml");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder.write("c.toml", text.replace(at, from.size(), to));
  }
  void let_go() {
    if (stay_ >= 0) close(stay_);
    stay_ = -1;
  }
  bool ended() const { return reaped_; }
  // The broker's last status, as `ivgpu status --json` prints it; "" unless the broker exited without a signal.
  std::string last_status() const { return folder.read("last-status"); }
  // Waits for the broker's exit code; -1 if a signal killed the broker.
  int wait() {
    int status = 0;
    waitpid(pid, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int terminate(int signal = SIGTERM) {
    kill(pid, signal);
    return wait();
  }
  // The live workers: all children of the broker except ivgpu-nvml, which a broker starts on a machine with a GPU.
  std::vector<pid_t> workers() const {
    std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    std::vector<pid_t> all;
    for (pid_t child; file >> child;) {
      std::string name;
      std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
      if (name != "ivgpu-nvml") all.push_back(child);
    }
    return all;
  }

  Folder folder;
  pid_t pid = -1;
  std::string ready;  // bytes from --ready-fd

 private:
  void start(const std::function<void()>& before) {
    int ready_pipe[2], stay_pipe[2];
    ASSERT_EQ(pipe(ready_pipe), 0);
    ASSERT_EQ(pipe2(stay_pipe, O_CLOEXEC), 0);
    const int log = open((folder / "log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    pid = fork();
    if (pid == 0) {
      if (!fake_.empty()) setenv("IVGPU_SIM_FAKE", fake_.c_str(), 1);
      dup2(log, 2);
      // A number above the descriptors that a service manager passes.
      constexpr int above = 600;
      const int stay = fcntl(stay_pipe[0], F_DUPFD, above), ready_end = fcntl(ready_pipe[1], F_DUPFD, above);
      // Creates a new file, since truncating the last broker's file would wait for a busy disk.
      unlink((folder / "last-status").c_str());
      const int last_file = open((folder / "last-status").c_str(), O_CREAT | O_WRONLY | O_EXCL, 0600);
      const int last = fcntl(last_file, F_DUPFD, above);
      for (const int moved : {ready_pipe[1], last_file}) close(moved);
      const std::string config = folder / "c.toml", ready_fd = std::to_string(ready_end),
                        stay_fd = std::to_string(stay), last_fd = std::to_string(last);
      close(ready_pipe[0]);
      before();
      execl(IVGPUD, "ivgpud", "--config", config.c_str(), "--ready-fd", ready_fd.c_str(), "--stay-while-fd",
            stay_fd.c_str(), "--last-status-fd", last_fd.c_str(), nullptr);
      _exit(126);
    }
    close(log);
    close(ready_pipe[1]);
    close(stay_pipe[0]);
    stay_ = stay_pipe[1];
    // A worker that hangs never becomes ready. The broker therefore counts as started once it waits for events.
    if (fake_ == "hang") {
      EXPECT_TRUE(eventually_logged("waiting through "));
    } else {
      read_ready(ready_pipe[0]);
    }
    close(ready_pipe[0]);
  }
  void read_ready(int from) {
    char bytes[64];
    pollfd news{from, POLLIN, 0};
    while (poll(&news, 1, deadline_ms) > 0) {
      const ssize_t n = read(from, bytes, sizeof bytes);
      if (n <= 0) break;
      ready.append(bytes, static_cast<std::size_t>(n));
    }
  }
  const std::string fake_;
  int stay_ = -1;
  bool reaped_ = false;
};

// The number of iterations of the broker's event loop since its start, from its status; 0 if the status lacks it.
inline std::uint64_t loop_iterations(const Broker& broker) {
  const std::string told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()}).text;
  const std::string key = "\"iterations\":";
  const std::size_t loop = told.find("\"loop\":{"), at = told.find(key, loop);
  if (loop == std::string::npos || at == std::string::npos) return 0;
  return std::strtoull(told.c_str() + at + key.size(), nullptr, 10);
}

// The number of a VM's workers that have exited, the number that ended by a signal which the broker did not send, and
// the last such signal. The numbers come from the status, since the log omits frequent lines.
struct Ends {
  unsigned long all = 0, signals = 0;
  std::string last_signal;
};
inline Ends ends_of_workers(const Broker& broker, const std::string& vm) {
  const std::string told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()}).text;
  const std::size_t from = told.find("\"worker_ends\":{", told.find("\"name\":\"" + vm + "\""));
  Ends ends;
  if (from == std::string::npos) return ends;
  const auto behind = [&](const std::string& key) { return told.find(key, from) + key.size(); };
  const auto number = [&](const char* kind) { return std::strtoul(told.c_str() + behind(kind), nullptr, 10); };
  ends.signals = number("\"signal\":");
  ends.all = ends.signals + number("\"orderly\":") + number("\"protocol_broken\":") + number("\"killed_by_broker\":") +
             number("\"other_code\":");
  const std::size_t last = behind("\"last_signal\":\"");
  ends.last_signal = told.substr(last, told.find('"', last) - last);
  return ends;
}

// A client of the ivshmem socket, which sees the messages that QEMU and guest processes see, and the region.
class Client {
 public:
  struct Message {
    std::int64_t value;
    int fd;
  };

  explicit Client(const std::string& path) {
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connected = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() {
    hang_up();
    for (const int fd : fds_) close(fd);
    if (base != nullptr) munmap(base, bytes);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void hang_up() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  int socket_fd() const { return socket_; }

  std::optional<Message> receive(int milliseconds = deadline_ms) {
    pollfd wait{socket_, POLLIN, 0};
    if (poll(&wait, 1, milliseconds) != 1) return std::nullopt;
    Message message{0, -1};
    iovec data{&message.value, sizeof message.value};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    if (recvmsg(socket_, &header, MSG_CMSG_CLOEXEC) != sizeof message.value) return std::nullopt;
    if (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr && c->cmsg_type == SCM_RIGHTS) {
      memcpy(&message.fd, CMSG_DATA(c), sizeof(int));
      fds_.push_back(message.fd);
    }
    return message;
  }

  // True if the broker closes the connection without another message.
  bool is_ended() const {
    pollfd wait{socket_, POLLIN, 0};
    char byte;
    return poll(&wait, 1, deadline_ms) == 1 && recv(socket_, &byte, 1, MSG_DONTWAIT) <= 0;
  }

  // Reads the whole greeting. Afterwards the region is mapped and the doorbells are known.
  bool greet(std::uint32_t slots, std::uint32_t vectors = 1) {
    for (std::uint32_t i = 0; i < 3 + 1 + slots + vectors; ++i) {
      const auto message = receive();
      if (!message) return false;
      messages.push_back(*message);
    }
    peer = static_cast<std::uint32_t>(messages[1].value);
    memfd = messages[2].fd;
    bytes = static_cast<std::size_t>(lseek(memfd, 0, SEEK_END));
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (at == MAP_FAILED) return false;
    base = static_cast<std::byte*>(at);
    return true;
  }

  // The eventfd of one of this client's own interrupts; valid after the greeting.
  int interrupt(std::uint32_t vector) const {
    for (const Message& m : messages)
      if (m.value == peer && m.fd >= 0 && vector-- == 0) return m.fd;
    return -1;
  }

  ring::RegionHeader& header() const { return other_side::region(base); }
  ring::SlotEntry& entry(std::uint32_t k) const { return other_side::entry(base, k); }
  // Words in the region that only the broker writes.
  ring::Shared<std::uint32_t> state(std::uint32_t k) const { return other_side::shared(entry(k).state); }
  ring::Shared<std::uint64_t> heartbeat() const { return other_side::shared(header().heartbeat); }
  ring::SlotWord word(std::uint32_t k) const { return ring::SlotWord::of(state(k).load()); }
  std::byte* slot(std::uint32_t k) const { return base + header().first_slot + k * header().slot_bytes; }
  volatile char* command(std::uint32_t k) const {
    return reinterpret_cast<volatile char*>(slot(k) + ring::arena_offset);
  }
  void ring_peer(std::uint32_t to) const {
    const std::uint64_t one = 1;
    for (const Message& m : messages) {
      if (m.value != to || m.fd < 0) continue;
      EXPECT_EQ(write(m.fd, &one, sizeof one), 8);
    }
  }
  bool step(std::uint32_t k, ring::SlotState from, ring::SlotState to) const {
    const ring::SlotWord now = word(k);
    std::uint32_t expected = now.with(from).word();
    const bool stepped = state(k).compare_exchange(expected, now.with(to).word());
    ring_peer(ring::peer_broker);
    return stepped;
  }
  // Claims a Ready slot as a guest does. Returns nothing if no slot is Ready before the deadline.
  std::optional<std::uint32_t> claim(std::uint32_t as_peer = 0) const {
    std::optional<std::uint32_t> taken;
    eventually([&] {
      for (std::uint32_t k = 0; k < header().slot_count && !taken; ++k) {
        ring::SlotWord seen = word(k);
        std::uint32_t expected = seen.with(ring::SlotState::Ready).word();
        if (state(k).compare_exchange(expected, seen.with(ring::SlotState::Claimed).word())) taken = k;
      }
      return taken.has_value();
    });
    if (!taken) return taken;
    entry(*taken).owner.pid = static_cast<std::uint32_t>(getpid());
    entry(*taken).owner.peer = as_peer != 0 ? as_peer : peer;
    ring_peer(ring::peer_broker);
    return taken;
  }
  bool becomes(std::uint32_t k, ring::SlotState state) const {
    return eventually([&] { return word(k).state == state; });
  }
  // True if a released slot becomes Empty, or Ready for the next program, before the deadline.
  bool comes_back(std::uint32_t k) const {
    return eventually(
        [&] { return word(k).state == ring::SlotState::Empty || word(k).state == ring::SlotState::Ready; });
  }
  // Rings the broker. Returns true if the broker answers before the deadline.
  bool is_answered() const {
    const std::uint64_t before = heartbeat().load();
    ring_peer(ring::peer_broker);
    return eventually([&] { return heartbeat().load() != before; });
  }
  std::uint32_t count(ring::SlotState state) const {
    std::uint32_t n = 0;
    for (std::uint32_t k = 0; k < header().slot_count; ++k) n += word(k).state == state;
    return n;
  }
  // Rings a fake worker with a command, and waits for the answer if the command has an answer.
  bool tell(std::uint32_t k, char what) const {
    command(k)[1] = 0;
    command(k)[0] = what;
    ring_peer(ring::peer_of_slot(k));
    return eventually([&] { return command(k)[1] == 'k'; });
  }

  bool connected = false;
  std::vector<Message> messages;
  std::uint32_t peer = 0;
  int memfd = -1;
  std::byte* base = nullptr;
  std::size_t bytes = 0;

 private:
  int socket_ = -1;
  std::vector<int> fds_;
};

}  // namespace broker_test
