// A strict stand-in for systemd in a restart. It stores a broker's descriptors and passes them to the next broker
// (sd_notify(3), sd_listen_fds(3)). A message that systemd would refuse or misread fails the test.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "tests/unit/broker/harness.h"

namespace broker_test {

class FakeFdStore {
 public:
  static constexpr std::size_t most_descriptors = 200;

  FakeFdStore() : name_(folder_ / "notify"), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    thread_ = std::thread([this] {
      while (receive()) {
      }
    });
  }
  ~FakeFdStore() {
    say("END");
    thread_.join();
    close_all();
    close(socket_);
  }
  FakeFdStore(const FakeFdStore&) = delete;
  FakeFdStore& operator=(const FakeFdStore&) = delete;

  // The stored names, after all messages so far have been read.
  std::set<std::string> names() {
    catch_up();
    const std::lock_guard lock(mutex_);
    std::set<std::string> all;
    for (const auto& [name, fd] : held_) all.insert(name);
    return all;
  }
  bool holds(const std::string& name) { return names().contains(name); }
  // Waits, since a broker that finds the manager's socket full sends the descriptor later.
  bool comes_to_hold(const std::string& name) {
    return eventually([&] { return holds(name); });
  }
  // Waits for a descriptor of this name. The store keeps its ownership. Returns -1 if none arrives.
  int held(const std::string& name) {
    if (!comes_to_hold(name)) return -1;
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(name);
    return found == held_.end() ? -1 : found->second;
  }
  // Limits the store. Like systemd, the store then silently closes any further descriptor.
  void bound(std::size_t most) { most_ = most; }
  std::size_t beyond() const { return beyond_; }
  // The number of messages that asked the store to keep a name with this beginning.
  std::size_t times_told(const std::string& beginning) {
    catch_up();
    const std::lock_guard lock(mutex_);
    const auto begins = [&](const std::string& name) { return name.starts_with(beginning); };
    return static_cast<std::size_t>(std::count_if(told_.begin(), told_.end(), begins));
  }
  void lose(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = held_.extract(name)) close(found.mapped());
  }
  // Stores another descriptor under this name. The caller keeps its own copy.
  void replace(const std::string& name, int fd) {
    lose(name);
    const std::lock_guard lock(mutex_);
    held_.emplace(name, fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }
  // Drops all descriptors, as systemd does when the service becomes inactive.
  void drop_all() {
    catch_up();
    close_all();
  }
  // Keeps all descriptors but forgets their names.
  void lose_names() {
    catch_up();
    const std::lock_guard lock(mutex_);
    for (const auto& [name, fd] : std::exchange(held_, {})) nameless_.push_back(fd);
  }
  // True if a broker sends this text, or has sent it since the last call with this text.
  bool hears(const std::string& text) {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(said_.begin(), said_.end(), [&](const auto& s) { return s.starts_with(text); });
      if (found == said_.end()) return false;
      said_.erase(found);
      return true;
    });
  }

  // Prepares a child as the manager does before the child becomes the service. `pass`: passes the stored descriptors to
  // the child.
  std::function<void()> environment(bool pass = true) {
    catch_up();
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::string, int>> passed;
    if (pass) passed.assign(held_.begin(), held_.end());
    return [passed, path = name_] {
      setenv("NOTIFY_SOCKET", path.c_str(), 1);
      std::string names;
      std::vector<int> moved;
      for (const auto& [name, fd] : passed) {
        names += (names.empty() ? "" : ":") + name;
        moved.push_back(fcntl(fd, F_DUPFD_CLOEXEC, 1000));
      }
      for (std::size_t i = 0; i < moved.size(); ++i) dup2(moved[i], static_cast<int>(3 + i));
      if (passed.empty()) return;
      setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
      setenv("LISTEN_FDS", std::to_string(passed.size()).c_str(), 1);
      setenv("LISTEN_FDNAMES", names.c_str(), 1);
    };
  }

 private:
  void close_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, fd] : std::exchange(held_, {})) close(fd);
    for (const int fd : std::exchange(nameless_, {})) close(fd);
  }
  void say(const std::string& text) const {
    const int own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(sendto(own, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&address), sizeof address),
              static_cast<ssize_t>(text.size()));
    close(own);
  }
  void catch_up() {
    const int mine = ++marks_;
    say("MARK");
    EXPECT_TRUE(eventually([&] { return marks_seen_ >= mine; }));
  }

  bool receive() {
    char bytes[4096];
    iovec data{bytes, sizeof bytes};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * 16)] = {};
    msghdr header{};
    header.msg_iov = &data, header.msg_iovlen = 1;
    header.msg_control = room, header.msg_controllen = sizeof room;
    const ssize_t length = recvmsg(socket_, &header, MSG_CMSG_CLOEXEC);
    if (length < 0) return errno == EINTR;
    std::vector<int> fds;
    for (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(c)))
      for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
        int fd;
        memcpy(&fd, reinterpret_cast<const char*>(c) + at, sizeof fd);
        fds.push_back(fd);
      }
    const std::string text(bytes, static_cast<std::size_t>(length));
    if (text == "END") return false;
    if (text == "MARK")
      ++marks_seen_;
    else
      understand(text, fds);
    return true;
  }

  void understand(const std::string& text, const std::vector<int>& fds) {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::string> words;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t equals = line.find('=');
      EXPECT_NE(equals, std::string::npos) << text;
      EXPECT_TRUE(words.emplace(line.substr(0, equals), line.substr(equals + 1)).second) << text;
    }
    if (words.contains("FDSTORE")) return store(text, words, fds);
    EXPECT_TRUE(fds.empty()) << text;
    if (!words.contains("FDSTOREREMOVE")) return said_.push_back(text);
    EXPECT_EQ(words.size(), 2U) << text;
    if (beyond_ != 0 && !held_.contains(words["FDNAME"])) return;  // over the limit: the store drops the descriptor
    const auto found = held_.extract(words["FDNAME"]);
    EXPECT_TRUE(found) << "nothing is held under this name: " << text;
    if (found) close(found.mapped());
  }

  void store(const std::string& text, std::map<std::string, std::string>& words, const std::vector<int>& fds) {
    EXPECT_EQ(words["FDSTORE"], "1") << text;
    EXPECT_EQ(words["FDPOLL"], "0") << "systemd would let go of it when its other end has gone: " << text;
    const std::string& name = words["FDNAME"];
    EXPECT_TRUE(!name.empty() && name.size() < 256 && std::all_of(name.begin(), name.end(), [](char c) {
      return c > ' ' && c < 127 && c != ':';
    })) << text;
    EXPECT_EQ(words.size(), 3U) << text;
    ASSERT_EQ(fds.size(), 1U) << text;
    told_.push_back(name);
    if (held_.size() >= most_) {
      ++beyond_;
      close(fds[0]);
      return;
    }
    EXPECT_LT(held_.size(), most_descriptors) << "more than FileDescriptorStoreMax";
    EXPECT_TRUE(held_.emplace(name, fds[0]).second) << "one is held under this name already: " << text;
  }

  Folder folder_;
  const std::string name_;
  const int socket_;
  std::mutex mutex_;  // guards the next four members
  std::map<std::string, int> held_;
  std::vector<int> nameless_;
  std::vector<std::string> said_, told_;
  std::atomic<std::size_t> most_{SIZE_MAX}, beyond_{0};
  int marks_ = 0;
  std::atomic<int> marks_seen_{0};
  std::thread thread_;
};

}  // namespace broker_test
