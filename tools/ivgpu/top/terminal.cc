#include "tools/ivgpu/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu::top {
namespace {

constexpr const char* own_page = "\x1b[?1049h\x1b[?25l";  // alternate screen, hidden cursor
constexpr const char* page_before = "\x1b[?25h\x1b[?1049l";
constexpr const char* home = "\x1b[H";
constexpr const char* end_of_line = "\x1b[K\n";
constexpr const char* end_of_page = "\x1b[J";

std::optional<termios> settings_of_keys() {
  termios settings{};
  if (tcgetattr(STDIN_FILENO, &settings) != 0) return std::nullopt;
  return settings;
}

sigset_t signals_of_screen() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGWINCH, SIGTSTP}) sigaddset(&signals, number);
  return signals;
}

}  // namespace

bool Terminal::usable() {
  const char* name = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && name != nullptr && *name != '\0' && std::string_view(name) != "dumb";
}

Terminal::Terminal() : keys_before_(settings_of_keys()) {
  const sigset_t signals = signals_of_screen();
  sigprocmask(SIG_BLOCK, &signals, &before_);
  screen_signals_ = Fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  enter();
}

Terminal::~Terminal() {
  leave();
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Terminal::enter() const {
  if (keys_before_) {
    termios keys = *keys_before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  print(own_page);
}

// Ignores errors: the terminal may be closed, and an Error may be propagating.
void Terminal::leave() const {
  std::fputs(page_before, stdout);
  std::fflush(stdout);
  if (keys_before_) tcsetattr(STDIN_FILENO, TCSANOW, &*keys_before_);
}

Terminal::Size Terminal::size() const {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  return known ? Size{size.ws_row, size.ws_col} : Size{24, 80};
}

void Terminal::show(const std::vector<std::string>& lines) const {
  std::string page = home;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    page += k == 0 ? "\x1b[1m" + lines[k] + "\x1b[0m" : lines[k];
    page += k + 1 < lines.size() ? end_of_line : "\x1b[K";  // a newline after the last line would scroll
  }
  print(page + end_of_page);
}

std::optional<Terminal::News> Terminal::key() {
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) == 1) return News{.key = key};
  keys_before_.reset();
  return std::nullopt;
}

std::optional<Terminal::News> Terminal::on_screen_signal() {
  signalfd_siginfo info{};
  if (read(screen_signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  if (info.ssi_signo == SIGTSTP) {
    leave();
    raise(SIGSTOP);  // SIGCONT resumes here
    enter();
  }
  return News{.redraw = true};
}

std::optional<Terminal::News> Terminal::wait(std::chrono::steady_clock::duration time) {
  std::array<pollfd, 3> events = {pollfd{gate_.fd(), POLLIN, 0}, pollfd{screen_signals_.get(), POLLIN, 0},
                                  pollfd{keys_before_ ? STDIN_FILENO : -1, POLLIN, 0}};
  const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(time), std::chrono::milliseconds(0));
  if (poll(events.data(), events.size(), static_cast<int>(left.count())) <= 0) return std::nullopt;
  if (const auto arrived = gate_.take()) return News{.signal = arrived->number};
  if (events[1].revents != 0) return on_screen_signal();
  return events[2].revents != 0 ? key() : std::nullopt;
}

}  // namespace ivgpu::top
