#include "host/broker/alloc/gputime_helper.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/base/fd_message.h"
#include "host/broker/alloc/gpu_accounts.h"

namespace host::broker {
namespace {

// The 32 hex digits of "GPU-1d450fd4-12e9-..."; "" for another form.
std::string digits_of(const std::string& uuid) {
  std::string digits;
  for (const char c : uuid.starts_with("GPU-") ? uuid.substr(4) : std::string())
    if (c != '-') digits += c;
  return digits.size() == 32 ? digits : "";
}

}  // namespace

GpuTimeHelper::GpuTimeHelper(EventLoop& loop, scheduler::Scheduler& scheduler, Options options)
    : loop_(loop), scheduler_(scheduler), options_(std::move(options)) {
  lost_ = loop_.watch(scheduler_.lost_fd(), POLLIN, [this](short) {
    if (scheduler_.take_lost()) lose("it answers no more");
  });
  start();
}

// When the socket closes, the helper enables all channels and exits.
GpuTimeHelper::~GpuTimeHelper() {
  scheduler_.set_switcher(nullptr);
  if (helper_) helper_->leave();
  for (EventLoop::Id* id : {&hello_, &lost_, &timer_}) loop_.forget(*id);
}

void GpuTimeHelper::start() {
  timer_ = 0;
  if (options_.library != "sim") return start_helper();
  std::vector<std::string> names;
  for (const Gpu& gpu : options_.gpus) names.push_back(name_of(gpu));
  const char* file = std::getenv("IVGPU_SIM_USAGE");
  auto switcher = file != nullptr ? scheduler::make_simulated_switcher(file, std::move(names)) : nullptr;
  if (switcher == nullptr) missing_ = "the simulated GPU has no file for it (IVGPU_SIM_USAGE)";
  scheduler_.set_switcher(std::move(switcher));
}

void GpuTimeHelper::start_helper() {
  Helper::Command command{.arguments = {options_.program}, .environment = {}, .input = "", .priority = 0};
  named_.clear();
  for (const Gpu& gpu : options_.gpus) {
    const std::string digits = digits_of(gpu.uuid);
    if (gpu.node.empty() || digits.empty() || named_.size() == ring::max_devices) continue;
    named_.push_back(gpu);
    command.arguments.push_back(gpu.node + "=" + digits);
  }
  if (named_.empty()) {
    missing_ = "this host has no GPU whose channels can be switched";
    return;
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return lose(std::strerror(errno));
  socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  command.passed = {theirs.get()};
  auto helper =
      Helper::start(loop_, command, [this](const Helper::Exit& exit) { lose(exit.how + first_words(exit.output)); });
  if (!helper) return lose(helper.error().message);
  helper_ = *std::move(helper);
  missing_ = "ivgpu-gputime is starting";
  hello_ = loop_.watch(socket_.get(), POLLIN, [this](short) { hear(); });
}

void GpuTimeHelper::hear() {
  loop_.forget(hello_);
  scheduler::Hello hello{};
  const ssize_t length = receive_now(socket_.get(), &hello, sizeof hello);
  if (length != sizeof hello || hello.version != scheduler::protocol_version || hello.gpus != named_.size())
    return lose("it is of another version");
  missing_.clear();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < named_.size(); ++i) {
    names.push_back(name_of(named_[i]));
    if (hello.gpu[i].refused != 0) missing_ = fmt::format("the driver refuses it for {}", named_[i].node);
  }
  if (std::exchange(reported_, missing_) != missing_ && !missing_.empty())
    spdlog::warn("GPU time: {}: there the driver's time slices share the GPU", missing_);
  scheduler_.set_switcher(
      scheduler::make_helper_switcher(std::move(socket_), hello, std::move(names), options_.longest_silence));
}

void GpuTimeHelper::lose(const std::string& why) {
  loop_.forget(hello_);
  helper_.reset();
  socket_.reset();
  scheduler_.set_switcher(nullptr);
  missing_ = fmt::format("ivgpu-gputime: {}", why);
  if (std::exchange(reported_, missing_) != missing_)
    spdlog::warn("GPU time: {}; the driver's time slices share GPUs until it is there again", missing_);
  if (timer_ == 0) timer_ = loop_.after(before_restart, [this] { start(); });
}

}  // namespace host::broker
