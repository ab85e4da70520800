#include "tools/ivgpu/vm/boot.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "tools/ivgpu/support/deaths.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds power_off_patience{10'000};  // the guest needs 0.1 s; QEMU gets SIGTERM after this time
constexpr milliseconds quit_patience{5'000};

// Restores the terminal: QEMU sets raw mode, and a killed QEMU leaves it set.
class TerminalGuard {
 public:
  TerminalGuard() : known_(tcgetattr(STDIN_FILENO, &before_) == 0) {}
  ~TerminalGuard() {
    if (known_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

 private:
  termios before_{};
  bool known_;
};

void write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno != EINTR) write_failed(errno);
    if (written <= 0) continue;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

// Our end of one of the guest's serial ports.
class Port {
 public:
  Port() : pair_(make_socket_pair()) {}
  int ours() const { return pair_.ours.get(); }
  int theirs() const { return pair_.theirs.get(); }
  void started() { pair_.theirs.reset(); }  // closes QEMU's end in this process, so that QEMU's exit is visible

  // Passes all available bytes to `take`. Returns false at the end of the stream.
  template <class Take>
  bool drain(Take take) {
    char buffer[16384];
    ssize_t n = 0;
    while ((n = read(ours(), buffer, sizeof buffer)) > 0) take(buffer, static_cast<std::size_t>(n));
    return n < 0;
  }

 private:
  FdPair pair_;
};

// One boot, from QEMU's start to its end.
class Boot {
 public:
  Boot(const VmOptions& options, const SignalGate& gate, const Steps& steps, fs::path qemu_log)
      : options_(options), gate_(gate), steps_(steps), qemu_log_(std::move(qemu_log)) {}

  int run(QemuOptions qemu);

 private:
  void start(QemuOptions& qemu);
  bool watch();  // waits for an event; false once QEMU has ended
  void look_at_ports();
  void take_control(const char* data, std::size_t size);
  void take_line(const std::string& line);
  void quit();
  std::optional<milliseconds> remaining() const;
  int with_death(int code, int ended) const;

  const VmOptions& options_;
  const SignalGate& gate_;
  const Steps& steps_;
  const fs::path qemu_log_;
  Port out_, err_, control_;
  std::optional<Child> process_;
  std::string control_text_;
  std::optional<int> code_;
  bool timed_out_ = false, asked_to_end_ = false, signalled_ = false;
  std::optional<Clock::time_point> deadline_;
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Boot::start(QemuOptions& qemu) {
  qemu.serial.out = out_.theirs();
  qemu.serial.err = err_.theirs();
  qemu.serial.control = control_.theirs();
  Command command{.argv = qemu_command(qemu), .keep = {out_.theirs(), err_.theirs(), control_.theirs()}};
  if (qemu.device.vsock >= 0) command.keep.push_back(qemu.device.vsock);
  const bool terminal = qemu.serial.console_log.empty();
  const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd log(open(qemu_log_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!terminal) {
    command.in = command.out = nothing.get();
    command.err = log.get();
  }
  try {
    process_.emplace(command);
  } catch (const Error& error) {  // 126 and 127 are reserved for the guest's command
    throw Error(exit_code::missing, error.what());
  }
  for (Port* port : {&out_, &err_, &control_}) port->started();
  if (options_.timeout_s > 0) deadline_ = Clock::now() + std::chrono::seconds(options_.timeout_s);
}

std::optional<milliseconds> Boot::remaining() const {
  if (!deadline_) return std::nullopt;
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*deadline_ - Clock::now()));
}

// SIGTERM ends QEMU; otherwise the Child's destructor kills it.
void Boot::quit() {
  process_->signal(SIGTERM);
  asked_to_end_ = true;
}

void Boot::take_line(const std::string& line) {
  char text[128];
  int code = 0;
  double seconds = 0;
  if (std::sscanf(line.c_str(), "up %127[^\n]", text) == 1) steps_.show(std::string("guest is up: ") + text);
  if (std::sscanf(line.c_str(), "exit %d %lf", &code, &seconds) != 2) return;
  code_ = code;
  std::snprintf(text, sizeof text, "command ended with %d after %.2f s in the guest", code, seconds);
  steps_.show(text);
  deadline_.reset();
  if (!options_.keep) deadline_ = Clock::now() + power_off_patience;
}

void Boot::take_control(const char* data, std::size_t size) {
  control_text_.append(data, size);
  for (std::size_t end = 0; (end = control_text_.find('\n')) != std::string::npos; control_text_.erase(0, end + 1))
    take_line(control_text_.substr(0, end));
}

void Boot::look_at_ports() {
  out_.drain([](const char* data, std::size_t size) { write_all(STDOUT_FILENO, data, size); });
  err_.drain([](const char* data, std::size_t size) { write_all(STDERR_FILENO, data, size); });
  control_.drain([this](const char* data, std::size_t size) { take_control(data, size); });
}

bool Boot::watch() {
  std::array<pollfd, 5> events = {pollfd{process_->pidfd(), POLLIN, 0}, pollfd{gate_.fd(), POLLIN, 0},
                                  pollfd{out_.ours(), POLLIN, 0}, pollfd{err_.ours(), POLLIN, 0},
                                  pollfd{control_.ours(), POLLIN, 0}};
  const auto patience = remaining();
  const int ready = poll(events.data(), events.size(), patience ? static_cast<int>(patience->count()) : -1);
  look_at_ports();
  if (ready == 0 && !code_) timed_out_ = true;
  if (ready == 0) quit();
  if (ready == 0) deadline_ = Clock::now() + quit_patience;
  if (const auto arrived = gate_.take()) {
    code_ = exit_code::signal_base + arrived->number;
    signalled_ = true;
    quit();
  }
  return !(events[0].revents & POLLIN);
}

// A guest that printed nothing never ran: QEMU's first line has the reason.
[[noreturn]] void throw_lost(int ended, const std::string& memory, const std::string& qemu,
                             const std::string& console) {
  if (ended != 0 && console.empty() && !qemu.empty())
    throw Error(exit_code::missing, "QEMU does not start: " + qemu.substr(0, qemu.find('\n')));
  if (console.empty() && qemu.empty())
    throw Error(exit_code::lost, "the guest ended before it said anything; --memory " + memory + " may be too little");
  throw Error(exit_code::lost,
              "the guest ended without a result (QEMU's exit code: " + std::to_string(ended) + "):\n" + qemu + console);
}

// A signal that ends ivgpu may have reached QEMU as well. Such a death is no failure of QEMU.
int Boot::with_death(int code, int ended) const {
  const std::string death = death_of("QEMU", ended, asked_to_end_ ? SIGTERM : 0);
  return death.empty() || signalled_ ? code : report_deaths(code, {death});
}

int Boot::run(QemuOptions qemu) {
  const TerminalGuard terminal;
  start(qemu);
  while (watch()) continue;
  const int ended = process_->wait();
  look_at_ports();
  if (timed_out_) std::fprintf(stderr, "ivgpu: the command did not end within %d s\n", options_.timeout_s);
  if (timed_out_) code_ = exit_code::timeout;
  if (code_) return with_death(*code_, ended);
  throw_lost(ended, options_.memory, text_of(qemu_log_), text_of(qemu.serial.console_log));
}

}  // namespace

int boot(const VmOptions& options, const SignalGate& gate, const Steps& steps, const fs::path& qemu_log,
         QemuOptions qemu) {
  return Boot(options, gate, steps, qemu_log).run(std::move(qemu));
}

}  // namespace ivgpu
