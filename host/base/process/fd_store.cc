#include "host/base/process/fd_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>
#include <vector>

#include "host/base/process/pidfd.h"

namespace host::broker {
namespace {

constexpr int first_passed = 3;

std::vector<std::string> cut_at_colons(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

// Closing is not enough: the manager still holds a copy until it has read the request, and a hostile worker may not
// exit by itself.
void end_what_it_names(int fd) {
  shutdown(fd, SHUT_RDWR);
  send_signal(fd, SIGKILL);
}

FdStore::FdStore(ServiceManager& manager) : manager_(manager) {
  const auto passed = ServiceManager::take_passed();
  const std::vector<std::string> names = cut_at_colons(passed.names);
  for (int i = 0; i < passed.count; ++i) {
    Fd fd(first_passed + i);
    if (fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      [[maybe_unused]] const int none = fd.release();
      spdlog::warn("LISTEN_FDS={}: descriptor {} is not open", passed.count, first_passed + i);
      return;
    }
    if (static_cast<std::size_t>(i) >= names.size()) continue;
    const std::string& name = names[static_cast<std::size_t>(i)];
    held_.insert(name);
    left_.try_emplace(name, std::move(fd));
  }
}

void FdStore::keep(const std::string& name, int fd) {
  if (manager_.keep(name, fd)) held_.insert(name);
}

void FdStore::forget(const std::string& name) {
  left_.erase(name);
  if (held_.erase(name) != 0) manager_.forget(name);
}

Fd FdStore::take(const std::string& name) {
  auto found = left_.extract(name);
  return found ? std::move(found.mapped()) : Fd();
}

std::set<std::string> FdStore::left(const std::string& beginning) const {
  std::set<std::string> names;
  for (auto at = left_.lower_bound(beginning); at != left_.end() && at->first.starts_with(beginning); ++at)
    names.insert(at->first);
  return names;
}

void FdStore::end_process(Fd process) {
  if (end_process_) return end_process_(std::move(process));
  end_what_it_names(process.get());
}

void FdStore::end_left(const std::string& name) {
  Fd fd = take(name);
  if (name.ends_with("/process")) return end_process(std::move(fd));
  end_what_it_names(fd.get());
}

void FdStore::forget_all(const std::string& beginning) {
  for (const std::string& name : left(beginning)) end_left(name);
  std::vector<std::string> names;
  for (auto at = held_.lower_bound(beginning); at != held_.end() && at->starts_with(beginning); ++at)
    names.push_back(*at);
  for (const std::string& name : names) forget(name);
}

void FdStore::forget_left() {
  for (const std::string& name : left("")) {
    end_left(name);
    forget(name);
  }
}

std::set<std::string> VmStore::left(const std::string& beginning) const {
  std::set<std::string> names;
  if (store_ == nullptr) return names;
  for (const std::string& name : store_->left(beginning_ + beginning)) names.insert(name.substr(beginning_.size()));
  return names;
}

}  // namespace host::broker
