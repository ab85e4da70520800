// Draws a live view on the terminal's alternate screen, reads keys without Enter, and redraws after size changes. The
// destructor and a suspension restore the terminal.
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
  // True if standard output is a terminal that supports drawing.
  static bool usable();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t rows, columns;
  };
  Size size() const;
  // Replaces the lines on the screen. The first line is bold.
  void show(const std::vector<std::string>& lines) const;

  struct News {
    char key = 0;         // 0: none
    bool redraw = false;  // the size has changed, or ivgpu was suspended
    int signal = 0;       // a signal that asks ivgpu to end; 0: none
  };
  // Returns the first event, or nullopt if none arrives within `time`.
  std::optional<News> wait(std::chrono::steady_clock::duration time);

 private:
  void enter() const;
  void leave() const;
  std::optional<News> key();
  std::optional<News> on_screen_signal();

  const SignalGate gate_;
  sigset_t before_{};
  Fd screen_signals_;                   // SIGWINCH and SIGTSTP
  std::optional<termios> keys_before_;  // nullopt: standard input is no terminal, or is at its end
};

}  // namespace ivgpu::top
