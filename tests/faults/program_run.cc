#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "tests/faults/program.h"

namespace faults {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds program_patience{30'000};
constexpr long long second_ns = 1'000'000'000;
constexpr milliseconds end_patience{1000};  // from the end of its output to its own
// A program that was about to end may do so before its worker has gone.
constexpr long long overlap_ns = second_ns / 10;
constexpr int device_unavailable = 46;

// Nobody need read it while the program runs.
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
      patience_(program_patience + milliseconds(ms)),
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
  const auto line = lines_.next(program_patience);
  if (line != "begun") throw Failure(mode_ + ": does not begin: " + line.value_or("no word") + errors());
}

Ending Program::ending() {
  const auto line = lines_.next(patience_);
  if (!line) {
    if (const auto code = child_.wait_for(end_patience)) expect_no_other_signal(mode_ + ": the program", *code, 0);
    throw Failure(mode_ + ": hangs, or ended without a word");
  }
  expect_no_other_signal(mode_ + ": the program", child_.wait(), 0);
  return parse_ending(*line);
}

void Program::expect_right() {
  const Ending how = ending();
  if (!how.right) throw Failure(mode_ + ": a program that nothing happened to says: " + how.line + errors());
}

long long Program::expect_lost(const End& host_side) {
  const Ending how = ending();
  const long long took = how.at - host_side.killed;
  if (how.right && how.at - host_side.gone < overlap_ns) return 0;
  const std::string when = std::to_string(took / 1'000'000) + " ms after its host side was killed, and " +
                           std::to_string((how.at - host_side.gone) / 1'000'000) + " ms after that had gone";
  if (!how.ended || how.error != device_unavailable)
    throw Failure(mode_ + ": a program says " + when + ": " + how.line);
  if (took > second_ns) throw Failure(mode_ + ": its call returned " + when);
  return took;
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
