#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "tests/deadline.h"
#include "tests/faults/program.h"

namespace faults {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int device_unavailable = 46;

// A memfd, so that no process needs to read the text while the program runs.
ivgpu::Fd memory_file() { return ivgpu::Fd(memfd_create("errors", MFD_CLOEXEC)); }

}  // namespace

std::optional<std::string> Lines::next(milliseconds patience) {
  const auto until = Clock::now() + patience;
  for (;;) {
    if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    pollfd wait{fd_, POLLIN, 0};
    char bytes[4096];
    ssize_t n = 0;
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) != 1 ||
        (n = read(fd_, bytes, sizeof bytes)) <= 0)
      return std::nullopt;
    text_.append(bytes, static_cast<std::size_t>(n));
  }
}

// If this function had to wait for a report, the program made the report after the call.
void Lines::expect_progress(const std::string& label, milliseconds patience) {
  const auto check = [&](const std::string& line) {
    if (!line.starts_with(label + "right ")) throw Failure("a program that nothing happened to says: " + line);
  };
  while (const auto line = next(milliseconds(1))) check(*line);
  for (int i = 0; i < 2; ++i) check(next(patience).value_or("nothing any more"));
}

std::string Lines::rest() {
  std::string all;
  for (auto line = next(milliseconds(100)); line; line = next(milliseconds(100))) all += "\n  " + *line;
  return all;
}

Ending parse_ending(const std::string& line) {
  Ending ending;
  ending.line = line;
  unsigned results = 0;
  ending.right = std::sscanf(line.c_str(), "right %u at %lld", &results, &ending.at) == 2 && results > 0;
  ending.ended = std::sscanf(line.c_str(), "ended %d at %lld took %lld", &ending.error, &ending.at, &ending.took) == 3;
  return ending;
}

Program::Program(const Paths& paths, const std::string& region, const std::string& mode, int ms)
    : mode_(mode),
      has_an_end_((mode == "busy" || mode == "exhaust") && ms < endless_ms),
      patience_(test_deadline + milliseconds(has_an_end_ ? ms : 0)),
      pipe_(ivgpu::make_pipe_to_us()),
      errors_(memory_file()),
      child_({.argv = {paths.program.string(), paths.guest_library.string(), mode, std::to_string(ms)},
              .environment = {{"IVGPU_REGION", region}},
              .out = pipe_.theirs.get(),
              .err = errors_.get()}),
      lines_(pipe_.ours.get()) {
  pipe_.theirs.reset();
}

void Program::expect_begun() {
  const auto line = lines_.next(test_deadline);
  if (line != "begun") throw Failure(mode_ + ": does not begin: " + line.value_or("no word") + errors());
}

std::string Program::line() {
  if (auto line = lines_.next(patience_)) return *line;
  // The program's output has ended. If the program has not exited, it hangs.
  if (const auto code = child_.wait_for(milliseconds(1000))) expect_no_other_signal(mode_ + ": the program", *code, 0);
  throw Failure(mode_ + ": hangs, or ended without a word");
}

Ending Program::ending() {
  const std::string last = line();
  const int code = child_.wait();
  expect_no_other_signal(mode_ + ": the program", code, 0);
  Ending how = parse_ending(last);
  how.right = how.right && code == 0;
  return how;
}

void Program::expect_right() {
  const Ending how = ending();
  if (!how.right) throw Failure(mode_ + ": a program that nothing happened to says: " + how.line + errors());
}

long long Program::expect_lost(long long killed) {
  const Ending how = ending();
  if (how.right && has_an_end_) return 0;
  if (!how.ended || how.error != device_unavailable)
    throw Failure(mode_ + ": a program whose host side has gone says: " + how.line);
  return how.at - killed;
}

void Program::expect_lost_for_good() {
  const std::string told = "lost " + std::to_string(device_unavailable) + " took ";
  std::string first;
  if (!before_deadline([&] { return !(first = line()).starts_with("right "); }))
    throw Failure(mode_ + ": a program goes on without its session: " + first);
  if (!first.starts_with(told)) throw Failure(mode_ + ": a program whose session has ended says: " + first);
  const Ending how = ending();
  if (!how.ended || how.error != device_unavailable)
    throw Failure(mode_ + ": after its session has ended a program says: " + how.line);
}

std::string Program::errors() const {
  std::string text = "\n";
  char bytes[1024];
  for (ssize_t n; (n = pread(errors_.get(), bytes, sizeof bytes, static_cast<off_t>(text.size() - 1))) > 0;)
    text.append(bytes, static_cast<std::size_t>(n));
  return text;
}

void Program::kill() {
  child_.signal(SIGKILL);
  expect_no_other_signal(mode_ + ": the program", child_.wait(), SIGKILL);
}

}  // namespace faults
