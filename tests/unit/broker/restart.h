// Restarts of a broker under running sessions: a real ivgpud, fake workers, and a stand-in for systemd that stores the
// descriptors.
#pragma once

#include "tests/unit/broker/fake_fd_store.h"
#include "tests/unit/process_life.h"

namespace broker_test {

using ring::SlotState;
using std::chrono::milliseconds;

inline bool ends(pid_t process) {
  return eventually([&] { return !lives(process); });
}

// The worker of a slot, as the broker's status shows it.
inline pid_t worker_of(const Broker& broker, std::uint32_t slot) {
  const std::string told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()}).text;
  const std::string key = "\"slot\":" + std::to_string(slot) + ",";
  const std::size_t from = told.find(key), at = told.find("\"worker\":", from);
  return from == std::string::npos || at == std::string::npos ? 0 : std::atoi(told.c_str() + at + 9);
}

// A broker with one session.
class Restart : public ::testing::Test {
 protected:
  void begin(const std::string& vm_keys = "", const std::string& keys = "") {
    broker = std::make_unique<Broker>(vm_keys, "", fd_store.environment(), "", keys);
    ASSERT_EQ(broker->ready, "ready\n");
    guest = std::make_unique<Client>(broker->socket_path());
    ASSERT_TRUE(guest->greet(3));
    const auto taken = guest->claim();
    ASSERT_TRUE(taken);
    slot = *taken;
    ASSERT_TRUE(guest->tell(slot, 'c')) << "the worker serves";
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, slot)) > 1; }));
    ASSERT_TRUE(eventually([&] { return guest->count(SlotState::Ready) == 1; })) << "the next one is ready";
    ASSERT_TRUE(eventually([&] { return fd_store.holds("t/peer/" + std::to_string(guest->peer)); }));
    ASSERT_TRUE(fd_store.holds("t/" + std::to_string(slot) + "/control"));
  }
  // Ends the broker: with SIGTERM, as the manager does, or with another signal, as a fault does.
  void end(int signal) {
    broker->terminate(signal);
    ASSERT_TRUE(lives(worker)) << "it goes on without a broker";
  }
  void next(bool pass = true) {
    broker->again(fd_store.environment(pass));
    ASSERT_EQ(broker->ready, "ready\n");
  }
  // True if the guest's connection is still open.
  bool is_connected() const {
    pollfd socket{guest->socket_fd(), POLLIN | POLLRDHUP, 0};
    return poll(&socket, 1, 0) == 0;
  }
  void expect_the_session_goes_on() {
    EXPECT_TRUE(broker->logged("t: 1 session(s) and 1 connection(s) of before the restart go on"));
    EXPECT_TRUE(guest->is_answered());
    EXPECT_TRUE(is_connected());
    EXPECT_EQ(guest->word(slot).state, SlotState::Claimed);
    EXPECT_TRUE(lives(worker));
    EXPECT_TRUE(guest->tell(slot, 'c')) << "the worker serves";
    EXPECT_EQ(worker_of(*broker, slot), worker);
  }
  void expect_the_session_has_ended(const std::string& why) {
    EXPECT_TRUE(broker->eventually_logged("t: its sessions of before the restart end")) << why;
    EXPECT_TRUE(broker->logged(why)) << why;
    EXPECT_TRUE(ends(worker));
    EXPECT_FALSE(is_connected());
    Client other(broker->socket_path());
    ASSERT_TRUE(other.greet(3));
    EXPECT_TRUE(other.claim()) << "new programs are served";
    EXPECT_FALSE(fd_store.holds("t/peer/" + std::to_string(guest->peer)) && other.peer != guest->peer);
  }

  FakeFdStore fd_store;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<Client> guest;
  std::uint32_t slot = 0;
  pid_t worker = 0;
};

}  // namespace broker_test
