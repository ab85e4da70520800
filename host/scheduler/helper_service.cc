#include "host/scheduler/helper_service.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>

namespace host::scheduler {

bool HelperService::greet() const {
  Hello hello{};
  hello.version = protocol_version, hello.gpus = static_cast<std::uint32_t>(gpus_.size());
  for (std::size_t i = 0; i < gpus_.size(); ++i) hello.gpu[i] = {gpus_[i].refused, gpus_[i].instance, 0};
  return send(socket_, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
}

void HelperService::run() {
  for (;;) {
    pollfd fd{socket_, POLLIN, 0};
    const int ready = poll(&fd, 1, any_off() ? silence_ms_ : -1);
    if (ready == 0) {
      std::fputs("the broker is silent: all channels are on\n", stderr);
      all_on();
      report_all_on();
    }
    if (ready > 0 && !hear()) return;
  }
}

bool HelperService::any_off() const {
  return std::ranges::any_of(gpus_, [](const Gpu& gpu) { return gpu.table && gpu.table->any_off(); });
}

bool HelperService::hear() {
  const ssize_t length = recv(socket_, &message_, sizeof message_, 0);
  const Switch& order = message_.order;
  if (length < static_cast<ssize_t>(sizeof order) || order.gpu >= gpus_.size()) return false;
  const std::size_t count = std::size_t{order.on} + order.off;
  if (count > most_channels || static_cast<std::size_t>(length) != sizeof order + count * sizeof(SwitchedChannel))
    return false;
  silence_ms_ = static_cast<int>(std::min(order.longest_silence_ms, 60'000U));
  if (count == 0) return true;  // the message only proves that the broker is alive
  SwitchTable* const table = gpus_[order.gpu].table.get();
  if (table == nullptr) return answer({order.gpu, static_cast<std::uint32_t>(count), gpus_[order.gpu].refused, 0});
  const auto began = std::chrono::steady_clock::now();
  const std::span<const SwitchedChannel> all(message_.channels.data(), count);
  const auto on = table->on(all.first(order.on), order.forced != 0);
  const auto off = table->off(all.subspan(order.on));
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  return answer({order.gpu, on.failed + off.failed, off.failed != 0 ? off.refused : on.refused,
                 static_cast<std::uint64_t>(took.count())});
}

bool HelperService::answer(const Switched& answer) const {
  return send(socket_, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

void HelperService::all_on() {
  for (Gpu& gpu : gpus_)
    if (gpu.table) gpu.table->all_on();
}

// MSG_DONTWAIT: the helper must not wait for a broker that does not read. Such a broker may lose the message.
void HelperService::report_all_on() const {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const Switched all{i, everything, 0, 0};
    send(socket_, &all, sizeof all, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace host::scheduler
