// `ivgpu top` repeatedly reads the broker's status and shows the changes, on a terminal as a screen that reacts to
// keys, else as text or JSON lines.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/top/rows.h"
#include "tools/ivgpu/top/terminal.h"
#include "tools/ivgpu/top/text.h"

namespace ivgpu {
namespace {

using Clock = std::chrono::steady_clock;

// Two status documents and the time between them.
class Readings {
 public:
  explicit Readings(const TopOptions& options) : runtime_dir_(options.runtime_dir), now_(read_status(runtime_dir_)) {}

  void again() {
    before_ = std::exchange(now_, read_status_again(runtime_dir_));
    const auto then = std::exchange(taken_, Clock::now());
    seconds_ = std::chrono::duration<double>(taken_ - then).count();
  }
  top::View view(const std::string& sorted_by) const {
    top::View view = top::view_of(now_, before_.empty() ? now_ : before_, seconds_);
    top::sort(view, sorted_by);
    return view;
  }

 private:
  const std::filesystem::path runtime_dir_;
  std::string before_, now_;
  Clock::time_point taken_ = Clock::now();
  double seconds_ = 0;
};

std::string text_of(const top::View& view, const TopOptions& options) {
  if (options.json) return top::as_json(view) + "\n";
  std::string text;
  for (const std::string& line : top::as_lines(view, options.sort)) text += line + "\n";
  return text + (options.once ? "" : "\n");
}

int print_readings(const TopOptions& options) {
  Readings readings(options);
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    readings.again();
    print(text_of(readings.view(options.sort), options));
  } while (!options.once);
  return 0;
}

std::string next_sort(const std::string& by) {
  const auto names = top::sort_names();
  const auto at = std::find(names.begin(), names.end(), by);
  return at == names.end() || std::next(at) == names.end() ? names.front() : *std::next(at);
}

class Screen {
 public:
  explicit Screen(const TopOptions& options)
      : interval_(std::chrono::round<Clock::duration>(std::chrono::duration<double>(options.interval_s))),
        sort_(options.sort),
        readings_(options) {}

  int run() {
    draw();
    for (auto due = Clock::now() + interval_; !code_;) {
      if (const auto news = terminal_.wait(due - Clock::now())) {
        obey(*news);
      } else if (Clock::now() >= due) {
        readings_.again();
        due = Clock::now() + interval_;
        draw();
      }
    }
    return *code_;
  }

 private:
  void obey(const top::Terminal::News& news) {
    if (news.signal != 0)
      code_ = exit_code::signal_base + news.signal;
    else if (news.key == 'q')
      code_ = 0;
    else if (news.key == 's')
      sort_ = next_sort(sort_);
    draw();
  }
  void draw() const {
    std::vector<std::string> lines = top::as_lines(readings_.view(sort_), sort_);
    lines.front() += "; q quits, s sorts";
    const auto size = terminal_.size();
    terminal_.show(top::cut(std::move(lines), size.rows, size.columns));
  }

  const Clock::duration interval_;
  std::string sort_;
  Readings readings_;  // precedes the terminal: nothing is drawn if no broker answers
  top::Terminal terminal_;
  std::optional<int> code_;
};

}  // namespace

int live_view(const TopOptions& options) {
  const bool on_screen = !options.once && !options.json && top::Terminal::usable();
  return on_screen ? Screen(options).run() : print_readings(options);
}

}  // namespace ivgpu
