// The broker's side of ivgpu-nvml: one question at a time. If the process ends or does not answer, the answer is that
// nothing is known; a later question starts another process.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "host/base/fd.h"
#include "host/base/fd_message.h"
#include "host/base/hostile_text.h"
#include "host/broker/gpu/gpu_usage.h"

namespace host::broker {
namespace {

constexpr auto patience = std::chrono::seconds(10);  // the first query of an unused GPU takes seconds

class NvmlUsage : public GpuUsage {
 public:
  NvmlUsage(EventLoop& loop, std::string program, Clock::duration between_starts)
      : loop_(loop), program_(std::move(program)), between_starts_(between_starts) {}
  ~NvmlUsage() override { end(); }

  bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return ask(gpus, "", std::move(answer));
  }
  bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return ask(gpus, facts_question, std::move(answer));
  }

  GpuUses ask_now(const std::vector<std::string>& gpus) override {
    std::string why = question(gpus, "");
    const Clock::time_point until = Clock::now() + patience;
    while (why.empty()) {
      pollfd news{output_.get(), POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0 || poll(&news, 1, static_cast<int>(left)) == 0) why = "ivgpu-nvml does not answer";
      if (news.revents == 0) continue;
      const Read read = read_some();
      if (read == Read::Answered) return std::exchange(uses_, {});
      if (read == Read::Ended) why = "ivgpu-nvml has ended";
    }
    end();
    return without(why);
  }

 private:
  enum class Read { More, Answered, Ended };

  bool ask(const std::vector<std::string>& gpus, const char* kind, std::function<void(const GpuUses&)> answer) {
    if (answer_) return false;
    answer_ = std::move(answer);
    if (const std::string why = question(gpus, kind); !why.empty()) {
      give_up(why, true);
      return true;
    }
    timer_ = loop_.after(patience, [this] {
      timer_ = 0;
      give_up("ivgpu-nvml does not answer", true);
    });
    watch_ = loop_.watch(output_.get(), POLLIN, [this](short) { on_output(); });
    return true;
  }

  // Sends the question; returns the reason if that fails.
  std::string question(const std::vector<std::string>& gpus, const char* kind) {
    uses_.clear();
    std::string line = kind;
    for (const std::string& gpu : gpus) {
      uses_[gpu] = {};
      line += (line.empty() ? "" : " ") + gpu;
    }
    line += '\n';
    if (pid_ <= 0) {
      if (const std::string why = start(); !why.empty()) return why;
    }
    const ssize_t sent = send_now(input_.get(), line.data(), line.size());
    return sent == static_cast<ssize_t>(line.size()) ? "" : "ivgpu-nvml has ended";
  }

  std::string start() {
    const Clock::time_point now = Clock::now();
    if (started_ != Clock::time_point() && now - started_ < between_starts_) return "ivgpu-nvml has ended";
    started_ = now;
    int in[2], out[2];
    // A socket, because send() can suppress SIGPIPE when the reader has gone.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
      return fmt::format("ivgpu-nvml: socketpair: {}", std::strerror(errno));
    const Fd child_in(in[0]);
    input_.reset(in[1]);
    if (pipe2(out, O_CLOEXEC) != 0) return fmt::format("ivgpu-nvml: pipe: {}", std::strerror(errno));
    const Fd child_out(out[1]);
    output_.reset(out[0]);
    fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, child_in.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, child_out.get(), STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    char* const arguments[] = {program_.data(), nullptr};
    const int failed = posix_spawn(&pid_, program_.c_str(), &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed == 0) return "";
    pid_ = -1;
    return fmt::format("{}: {}", program_, std::strerror(failed));
  }

  // Kills the process without waiting for it, since a call into the GPU's kernel driver may not return.
  void end() {
    loop_.forget(watch_);
    loop_.forget(timer_);
    input_.reset();
    output_.reset();
    lines_ = {};
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      ended_.push_back(pid_);
      pid_ = -1;
    }
    std::erase_if(ended_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

  GpuUses without(const std::string& why) {
    GpuUses uses = std::exchange(uses_, {});
    for (auto& [gpu, use] : uses) use = {.total = 0, .missing = why, .processes = {}};
    return uses;
  }

  void give_up(const std::string& why, bool and_end) {
    if (and_end) end();
    loop_.forget(timer_);
    timer_ = loop_.after(Clock::duration::zero(), [this, why] {
      timer_ = 0;
      std::exchange(answer_, nullptr)(without(why));
    });
  }

  void on_output() {
    const Read read = read_some();
    if (read == Read::More) return;
    if (read == Read::Ended) return give_up("ivgpu-nvml has ended", true);
    loop_.forget(timer_);
    loop_.forget(watch_);
    std::exchange(answer_, nullptr)(std::exchange(uses_, {}));
  }

  Read read_some() {
    std::array<char, 4096> bytes;
    const ssize_t n = read(output_.get(), bytes.data(), bytes.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Read::More;
    if (n <= 0) return Read::Ended;
    Read so_far = Read::More;
    for (const std::string& line : lines_.add({bytes.data(), static_cast<std::size_t>(n)})) {
      if (line == "end") so_far = Read::Answered;
      take_usage_line(line, uses_);
    }
    return so_far;
  }

  EventLoop& loop_;
  std::string program_;
  const Clock::duration between_starts_;
  pid_t pid_ = -1;
  std::vector<pid_t> ended_;  // not reaped yet
  Fd input_, output_;
  Clock::time_point started_{};
  LineCutter lines_;
  GpuUses uses_;
  std::function<void(const GpuUses&)> answer_;
  EventLoop::Id watch_ = 0, timer_ = 0;
};

}  // namespace

std::unique_ptr<GpuUsage> make_nvml_usage(EventLoop& loop, const std::string& program, Clock::duration between_starts) {
  return std::make_unique<NvmlUsage>(loop, program, between_starts);
}

}  // namespace host::broker
