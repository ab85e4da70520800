#include "host/scheduler/switcher.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "host/simgpu/api/device/usage_file.h"

namespace host::scheduler {
namespace {

std::optional<std::size_t> place_in(const std::vector<std::string>& gpus, const std::string& name) {
  const auto found = std::ranges::find(gpus, name);
  return found != gpus.end() ? std::optional<std::size_t>(found - gpus.begin()) : std::nullopt;
}

// The answers of a switcher that needs no reply from another process.
class OwnAnswers {
 public:
  void add(const Switcher::Answer& answer) { answers_.push_back(answer); }
  std::optional<Switcher::Answer> take() {
    if (answers_.empty()) return std::nullopt;
    const Switcher::Answer answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

 private:
  std::deque<Switcher::Answer> answers_;
};

class HelperSwitcher : public Switcher {
 public:
  HelperSwitcher(broker::Fd socket, const Hello& hello, std::vector<std::string> gpus,
                 std::chrono::milliseconds longest_silence)
      : socket_(std::move(socket)), hello_(hello), gpus_(std::move(gpus)), silence_(longest_silence) {}

  std::optional<std::size_t> place_of(const std::string& gpu) const override {
    const auto place = place_in(gpus_, gpu);
    return place && *place < hello_.gpus && hello_.gpu[*place].refused == 0 ? place : std::nullopt;
  }
  std::uint32_t instance_of(std::size_t place) const override { return hello_.gpu[place].instance; }
  int fd() const override { return socket_.get(); }

  bool begin(std::size_t gpu, const std::vector<Worker>& on, const std::vector<Worker>& off, bool forced) override {
    Answer& under_way = under_way_.try_emplace(gpu).first->second;
    under_way = {.gpu = gpu};
    const bool sent = send_all(gpu, on, true, forced) && send_all(gpu, off, false, false);
    if (outstanding_[gpu] == 0) answers_.add(under_way);  // the workers have no channels, so there is nothing to do
    return sent;
  }

  std::optional<Answer> answer(bool& lost) override {
    if (const auto own = answers_.take()) return own;
    for (;;) {
      Switched reported{};
      const ssize_t length = recv(socket_.get(), &reported, sizeof reported, MSG_DONTWAIT);
      if (length < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
      const bool is_all = length == sizeof reported && reported.failed == everything;
      lost = length != sizeof reported || reported.gpu >= hello_.gpus || (!is_all && outstanding_[reported.gpu] == 0);
      if (lost) return std::nullopt;
      if (is_all) return Answer{.gpu = reported.gpu, .everything_on = true};
      Answer& sum = under_way_[reported.gpu];
      sum.failed += reported.failed, sum.took += std::chrono::nanoseconds(reported.took_ns);
      if (reported.failed != 0) sum.refused = reported.refused;
      if (--outstanding_[reported.gpu] == 0) return sum;
    }
  }

  void keep(std::chrono::milliseconds longest_silence) override {
    silence_ = longest_silence;
    send_message({0, 0, 0, silence_ms(), 0}, {});
  }

 private:
  // Sends an order in as many messages as needed.
  bool send_all(std::size_t gpu, const std::vector<Worker>& workers, bool on, bool forced) {
    std::vector<SwitchedChannel> channels;
    for (const Worker& worker : workers)
      channels.insert(channels.end(), worker.channels.begin(), worker.channels.end());
    for (std::span<const SwitchedChannel> left(channels); !left.empty();) {
      const auto part = left.first(std::min(left.size(), most_channels));
      const auto count = static_cast<std::uint32_t>(part.size());
      if (!send_message({static_cast<std::uint32_t>(gpu), on ? count : 0, on ? 0 : count, silence_ms(), forced}, part))
        return false;
      ++outstanding_[gpu];
      left = left.subspan(part.size());
    }
    return true;
  }
  bool send_message(const Switch& order, std::span<const SwitchedChannel> channels) {
    std::vector<std::byte> message(sizeof order + channels.size_bytes());
    std::memcpy(message.data(), &order, sizeof order);
    if (!channels.empty()) std::memcpy(message.data() + sizeof order, channels.data(), channels.size_bytes());
    return send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(message.size());
  }
  std::uint32_t silence_ms() const { return static_cast<std::uint32_t>(silence_.count()); }

  const broker::Fd socket_;
  const Hello hello_;
  const std::vector<std::string> gpus_;
  std::chrono::milliseconds silence_;
  std::map<std::size_t, Answer> under_way_;         // by GPU: the sum of the answers so far
  std::map<std::size_t, std::size_t> outstanding_;  // by GPU: the number of unanswered messages
  OwnAnswers answers_;
};

class SimulatedSwitcher : public Switcher {
 public:
  SimulatedSwitcher(simgpu::UsageFile& file, std::vector<std::string> gpus) : file_(file), gpus_(std::move(gpus)) {}

  std::optional<std::size_t> place_of(const std::string& gpu) const override { return place_in(gpus_, gpu); }
  std::uint32_t instance_of(std::size_t place) const override { return static_cast<std::uint32_t>(place); }
  int fd() const override { return -1; }

  bool begin(std::size_t gpu, const std::vector<Worker>& on, const std::vector<Worker>& off, bool) override {
    for (const bool is_off : {false, true})
      for (const Worker& worker : is_off ? off : on)
        for (simgpu::UsageEntry& entry : file_.entry)
          if (worker.process != 0 &&  // 0: the worker is starting; a free entry has 0, too
              entry.process.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(worker.process))
            entry.off[gpu].store(is_off, std::memory_order_relaxed);
    answers_.add({.gpu = gpu});
    return true;
  }
  std::optional<Answer> answer(bool&) override { return answers_.take(); }
  void keep(std::chrono::milliseconds) override {}

 private:
  simgpu::UsageFile& file_;
  const std::vector<std::string> gpus_;
  OwnAnswers answers_;
};

}  // namespace

std::unique_ptr<Switcher> make_helper_switcher(broker::Fd socket, const Hello& hello, std::vector<std::string> gpus,
                                               std::chrono::milliseconds longest_silence) {
  return std::make_unique<HelperSwitcher>(std::move(socket), hello, std::move(gpus), longest_silence);
}

std::unique_ptr<Switcher> make_simulated_switcher(const std::string& usage_file, std::vector<std::string> gpus) {
  simgpu::UsageFile* const file = simgpu::map_usage_file(usage_file.c_str());
  return file != nullptr ? std::make_unique<SimulatedSwitcher>(*file, std::move(gpus)) : nullptr;
}

}  // namespace host::scheduler
