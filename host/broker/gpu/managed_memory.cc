#include "host/broker/gpu/managed_memory.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "ring/base/mutex.h"

namespace host::broker {
namespace {

using namespace std::chrono_literals;

// Some 40,000 mappings. A worker has some hundreds, which take a millisecond to read.
constexpr std::size_t longest_list = std::size_t{4} << 20;
constexpr auto longest_look = 500ms;

// In another mount namespace more folders may precede the name. The device file for tools matches, too.
constexpr std::string_view device_file = "/nvidia-uvm";

// Length of the mapping "BEGIN-END ...", which is in hexadecimal; 0 if malformed.
std::uint64_t length_of(std::string_view line) {
  std::uint64_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return 0;
  if (std::from_chars(first.ptr + 1, last, end, 16).ec != std::errc() || end < begin) return 0;
  return end - begin;
}

Mapped unread(const std::string& path, int error) {
  const char* const remedy = error == EACCES || error == EPERM ? "; ivgpud needs CAP_SYS_PTRACE for it" : "";
  return {Mapped::End::Unread, 0, path + ": " + std::strerror(error) + remedy};
}

}  // namespace

Mapped managed_in(std::istream& maps, MapsClock::time_point until) {
  std::uint64_t bytes = 0;
  std::size_t read = 0;
  for (std::string line; std::getline(maps, line);) {
    read += line.size() + 1;
    if (read > longest_list) return {Mapped::End::TooLong, bytes};
    if (MapsClock::now() > until) return {Mapped::End::TooSlow, bytes};
    if (line.find(device_file) != std::string::npos) bytes += length_of(line);
  }
  return {Mapped::End::Whole, bytes};
}

Mapped managed_memory_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/maps";
  errno = 0;
  std::ifstream maps(path);
  const int error = errno;
  if (maps) return managed_in(maps, MapsClock::now() + longest_look);
  // /proc may hide a process that still runs.
  const bool has_ended = (error == ENOENT || error == ESRCH) && kill(process, 0) != 0 && errno == ESRCH;
  return has_ended ? Mapped{} : unread(path, error);
}

ManagedMemory::ManagedMemory(Read read) : read_(std::move(read)), thread_([this] { run(); }) {}

ManagedMemory::~ManagedMemory() {
  {
    const ring::MutexLock lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_one();
  thread_.join();
}

std::map<pid_t, ManagedMemory::Held> ManagedMemory::look(const std::set<pid_t>& processes,
                                                         std::chrono::milliseconds patience) {
  ring::UniqueLock lock(mutex_);
  left_ = processes;
  std::erase_if(known_, [&](const auto& known) { return !processes.contains(known.first); });
  for (const pid_t process : processes) known_.try_emplace(process);
  wanted_.notify_one();
  done_.wait_for(lock.native(), patience, [this]() REQUIRES(mutex_) { return left_.empty() && !busy_; });
  std::map<pid_t, Held> all;
  for (const pid_t process : processes) all[process] = known_[process].held;
  return all;
}

// Reads the processes in turn, so that a slow list delays the others only once.
void ManagedMemory::run() {
  pid_t last = 0;
  ring::UniqueLock lock(mutex_);
  for (;;) {
    wanted_.wait(lock.native(), [this]() REQUIRES(mutex_) { return ends_ || !left_.empty(); });
    if (ends_) return;
    auto next = left_.upper_bound(last);
    if (next == left_.end()) next = left_.begin();
    last = *next;
    left_.erase(next);
    busy_ = true;
    lock.unlock();
    const Mapped mapped = read_(last);
    lock.lock();
    busy_ = false;
    if (const auto known = known_.find(last); known != known_.end()) note(known->second, mapped);
    if (left_.empty()) done_.notify_one();
  }
}

void ManagedMemory::note(Known& known, const Mapped& mapped) {
  known.slow = mapped.end == Mapped::End::TooSlow ? known.slow + 1 : 0;
  known.held.unread = mapped.why;
  if (mapped.end == Mapped::End::Whole) known.held.bytes = mapped.bytes;
  if (mapped.end == Mapped::End::TooLong || known.slow >= most_slow) known.held.bytes.reset();
}

}  // namespace host::broker
