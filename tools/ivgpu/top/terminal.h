// The terminal as a screen for one live view: its own page, so that what stood there comes back, keys without Enter,
// and a size that may change. All of it is undone when the object goes, and while `ivgpu` is suspended.
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/support/child.h"

namespace ivgpu::top {

class Terminal {
 public:
  // True where standard output is a terminal that can be drawn on.
  static bool usable();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t rows, columns;
  };
  Size size() const;
  // In place of the lines before. The first is emphasised.
  void show(const std::vector<std::string>& lines) const;

  struct News {
    char key = 0;         // 0: none
    bool redraw = false;  // the size has changed, or ivgpu was suspended
    int signal = 0;       // that asks ivgpu to end; 0: none
  };
  // The first that comes; nothing where time passes.
  std::optional<News> wait(std::chrono::steady_clock::duration time);

 private:
  void enter() const;
  void leave() const;
  std::optional<News> key();
  std::optional<News> on_screen_signal();

  const SignalGate gate_;
  sigset_t before_{};
  Fd screen_signals_;                   // a new size, and the wish to suspend
  std::optional<termios> keys_before_;  // nothing: standard input is no terminal, or has ended
};

}  // namespace ivgpu::top
