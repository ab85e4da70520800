#include "tools/ivgpu/support/user_signals.h"

#include <array>

namespace ivgpu {
namespace {

constexpr std::array changed = {SIGCHLD, SIGPIPE, SIGXFSZ};  // signals that ivgpu changes for itself

struct UserSignals {
  std::array<struct sigaction, changed.size()> actions{};
  sigset_t mask{};

  UserSignals() {
    for (std::size_t i = 0; i < changed.size(); ++i) sigaction(changed[i], nullptr, &actions[i]);
    sigprocmask(SIG_SETMASK, nullptr, &mask);
  }
};

const UserSignals& noted() {
  static const UserSignals signals;
  return signals;
}

}  // namespace

void note_user_signals() { noted(); }

void take_user_signals() {
  for (std::size_t i = 0; i < changed.size(); ++i) sigaction(changed[i], &noted().actions[i], nullptr);
  sigprocmask(SIG_SETMASK, &noted().mask, nullptr);
}

void take_default_signals() {
  for (const int number : changed) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace ivgpu
