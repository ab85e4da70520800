// Listening sockets across a restart of the broker. A client that connects between two brokers must wait, and must not
// be refused.
#include <sys/stat.h>

#include <future>

#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;

class RestartSockets : public Restart {
 protected:
  // The name under which the manager stores the VM's socket.
  std::string name_of_socket() {
    struct stat there {};
    EXPECT_EQ(stat(broker->socket_path().c_str(), &there), 0);
    char inode[40];
    std::snprintf(inode, sizeof inode, "-%llx-", static_cast<unsigned long long>(there.st_ino));
    for (const std::string& name : fd_store.names())
      if (name.starts_with("listen-") && name.find(inode) != std::string::npos) return name;
    return "";
  }
  unsigned mode() const {
    struct stat there {};
    return stat(broker->socket_path().c_str(), &there) == 0 ? there.st_mode & 0777 : 0;
  }
  // Returns after the broker has noticed the programs' end, so that the next broker has no program to adopt.
  void expect_new_programs_are_served(std::uint32_t slots = 3) {
    std::string connection;
    {
      Client other(broker->socket_path());
      ASSERT_TRUE(other.greet(slots));
      EXPECT_TRUE(other.claim());
      connection = "t/peer/" + std::to_string(other.peer);
    }
    EXPECT_TRUE(eventually([&] { return !fd_store.holds(connection); }));
    EXPECT_TRUE(eventually([&] { return guest->count(SlotState::Claimed) == 1; }));
  }
};

TEST_F(RestartSockets, AProgramThatConnectsMeanwhileWaitsAndIsServed) {
  begin();
  const std::string socket = name_of_socket();
  ASSERT_NE(socket, "");
  for (const int signal : {SIGTERM, SIGKILL}) {
    end(signal);
    Client early(broker->socket_path());
    ASSERT_TRUE(early.connected) << "it was refused";
    EXPECT_FALSE(early.receive(200)) << "nobody is there to greet it";
    next();
    ASSERT_TRUE(early.greet(3));
    const auto taken = early.claim();
    ASSERT_TRUE(taken);
    EXPECT_TRUE(early.tell(*taken, 'c'));
    EXPECT_EQ(name_of_socket(), socket) << "it is the same one";
    EXPECT_TRUE(guest->tell(slot, 'c'));
    early.hang_up();
    ASSERT_TRUE(guest->comes_back(*taken));
  }
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(fd_store.names(), std::set<std::string>()) << "SIGINT ends everything";
  EXPECT_NE(access(broker->socket_path().c_str(), F_OK), 0);
}

TEST_F(RestartSockets, OneThatHasGoneAgainHurtsNobody) {
  begin();
  end(SIGKILL);
  for (int i = 0; i < 20; ++i) {
    Client gone(broker->socket_path());
    ASSERT_TRUE(gone.connected);
  }
  next();
  expect_the_session_goes_on();
  expect_new_programs_are_served();
}

TEST_F(RestartSockets, CommandsWaitForTheNextBroker) {
  begin();
  end(SIGKILL);
  std::vector<std::future<Outcome>> commands;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status"}, {"reload"}, {"end", "t/" + std::to_string(slot)}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--runtime-dir", broker->folder.path()});
    commands.push_back(std::async(std::launch::async, run_program, IVGPU, all));
  }
  std::this_thread::sleep_for(milliseconds(300));
  next();
  for (auto& command : commands) {
    const Outcome outcome = command.get();
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
  EXPECT_TRUE(ends(worker)) << "`ivgpu end` was heard";
}

// QEMU connects only once, and no manager restarts it.
TEST_F(RestartSockets, AQemuThatStartsMeanwhileWaits) {
  begin();
  end(SIGTERM);
  std::future<Outcome> qemu = std::async(std::launch::async, [&] {
    return run_program("/bin/sh",
                       {"-c", "(sleep 1; echo info pci; echo quit) | timeout 60 " QEMU
                              " -nodefaults -display none -machine q35 -accel tcg -S -monitor stdio -chardev "
                              "socket,id=c,path=" +
                                  broker->socket_path() + " -device ivshmem-doorbell,chardev=c,vectors=1"});
  });
  std::this_thread::sleep_for(milliseconds(700));
  next();
  const Outcome outcome = qemu.get();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PCI device 1af4:1110"), std::string::npos) << outcome.text;
  EXPECT_TRUE(guest->tell(slot, 'c'));
}

// ---- sockets that are not adopted -----------------------------------------------------------------------------------

// A change of the key socket_mode ends the VM's sessions as well.
TEST_F(RestartSockets, OneWithOtherPermissionsIsMadeAnew) {
  begin("socket_mode = \"0600\"\n");
  const std::string before = name_of_socket();
  EXPECT_EQ(mode(), 0600U);
  end(SIGTERM);
  Client early(broker->socket_path());
  ASSERT_TRUE(early.connected);
  broker->change_file("0600", "0666");
  next();
  EXPECT_EQ(mode(), 0666U);
  EXPECT_TRUE(early.is_ended()) << "who has come by the old one may not be who may come";
  EXPECT_NE(name_of_socket(), before);
  EXPECT_FALSE(fd_store.holds(before));
  expect_new_programs_are_served();
}

TEST_F(RestartSockets, OneThatIsNotAtItsPathAnyMoreIsMadeAnew) {
  begin();
  for (const bool replaced : {false, true}) {
    const std::string before = name_of_socket();
    end(SIGKILL);
    ASSERT_EQ(unlink(broker->socket_path().c_str()), 0);
    if (replaced) {
      const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      broker->socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
      ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      close(other);
    }
    next();
    EXPECT_NE(name_of_socket(), before);
    EXPECT_FALSE(fd_store.holds(before));
    expect_the_session_goes_on();
    expect_new_programs_are_served();
    broker->folder.write("log", "");
  }
}

TEST_F(RestartSockets, WhatIsNoSocketThatListensIsNotTaken) {
  begin();
  const std::string name = name_of_socket();
  const int wrong[] = {open("/dev/null", O_RDWR | O_CLOEXEC), socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  for (const int fd : wrong) {
    const std::string now = name_of_socket();
    end(SIGKILL);
    fd_store.replace(now, fd);
    next();
    expect_the_session_goes_on();
    expect_new_programs_are_served();
    broker->folder.write("log", "");
  }
}

TEST_F(RestartSockets, AVmThatIsInTheFileNoMoreLeavesNone) {
  begin();
  const std::string before = name_of_socket();
  end(SIGTERM);
  Client early(broker->socket_path());
  ASSERT_TRUE(early.connected);
  broker->change_file("[vm.t]", "[vm.u]");
  next();
  EXPECT_TRUE(early.is_ended());
  EXPECT_NE(access(broker->socket_path().c_str(), F_OK), 0) << "a socket that nobody serves";
  EXPECT_NE(access((broker->socket_path() + ".lock").c_str(), F_OK), 0);
  EXPECT_FALSE(fd_store.holds(before));
}

// The VM has to restart; a program need not.
TEST_F(RestartSockets, OneOfAVmThatIsNotTakenOverIsServedAllTheSame) {
  begin();
  end(SIGTERM);
  Client early(broker->socket_path());
  ASSERT_TRUE(early.connected);
  broker->change_file("slots = 3", "slots = 2");
  next();
  EXPECT_TRUE(broker->logged(": keys that need a restart are others by now")) << broker->log();
  EXPECT_TRUE(ends(worker));
  ASSERT_TRUE(early.greet(2));
  EXPECT_TRUE(early.claim());
}

TEST_F(RestartSockets, TheEndOfTheServiceIsTheirEnd) {
  begin();
  end(SIGTERM);
  Client early(broker->socket_path());
  ASSERT_TRUE(early.connected);
  fd_store.drop_all();
  EXPECT_TRUE(early.is_ended());
  Client late(broker->socket_path());
  EXPECT_FALSE(late.connected);
  next(false);
  expect_new_programs_are_served();
}

}  // namespace
