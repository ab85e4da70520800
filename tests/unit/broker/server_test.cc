// The ivshmem server as its clients see it: bytes, descriptors, permissions, limits.
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/child.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;

TEST(Ivshmem, TheGreetingIsByteForByteThatOfTheProtocol) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  std::vector<std::pair<std::int64_t, bool>> seen;  // the value of a message, and whether a descriptor came with it
  for (const auto& m : guest.messages) seen.emplace_back(m.value, m.fd >= 0);
  const std::vector<std::pair<std::int64_t, bool>> expected = {
      {0, false}, {65, false}, {-1, true},             // version, the client's id, region
      {0, true},  {1, true},   {2, true},  {3, true},  // the doorbells of the broker and of the slots
      {65, true}};                                     // the client's own interrupt: one vector
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(guest.receive(100)) << "nothing follows";
}

// True if two empty descriptors share one eventfd: a value written to `a` can then be read from `b`.
bool are_one(int a, int b) {
  const std::uint64_t some = 3;
  std::uint64_t found = 0;
  return write(a, &some, sizeof some) == 8 && read(b, &found, sizeof found) == 8 && found == some;
}

TEST(Ivshmem, AClientsOwnInterruptsComeLastOneForEachVector) {
  Broker broker("vectors = 2");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3, 2));
  std::vector<std::int64_t> ids;
  for (const auto& m : guest.messages) ids.push_back(m.value);
  EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 65, -1, 0, 1, 2, 3, 65, 65}));
  EXPECT_FALSE(guest.receive(100)) << "nothing follows";
  EXPECT_EQ(guest.header().guest_vectors, 2U);
  EXPECT_FALSE(are_one(guest.interrupt(0), guest.interrupt(1)));
  std::uint64_t left = 0;
  EXPECT_EQ(read(guest.interrupt(0), &left, sizeof left), 8);
}

// Workers start before a guest connects and outlive the guest, so all clients share one set of interrupts.
TEST(Ivshmem, EveryClientHasTheSameInterrupts) {
  Broker broker("vectors = 2");
  Client first(broker.socket_path()), second(broker.socket_path());
  ASSERT_TRUE(first.greet(3, 2));
  ASSERT_TRUE(second.greet(3, 2));
  for (const std::uint32_t v : {0U, 1U}) EXPECT_TRUE(are_one(first.interrupt(v), second.interrupt(v))) << v;
}

TEST(Ivshmem, NoVectorIsWithoutASlot) {
  Broker broker("vectors = 64");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3, 3));
  EXPECT_FALSE(guest.receive(100)) << "nothing follows";
  EXPECT_EQ(guest.header().guest_vectors, 3U);
}

TEST(Ivshmem, TheRegionIsSealedAndItsHeaderComplete) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_EQ(guest.bytes, 128U << 20);
  EXPECT_EQ(fcntl(guest.memfd, F_GET_SEALS) & 7, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_EQ(ftruncate(guest.memfd, 4096), -1);
  const ring::RegionHeader& header = guest.header();
  EXPECT_EQ(header.magic, ring::region_magic);
  EXPECT_EQ(header.version, ring::layout_version);
  EXPECT_EQ(header.slot_count, 3U);
  EXPECT_NE(header.generation, 0U);
  EXPECT_EQ(header.region_bytes, 128U << 20);
  EXPECT_EQ(header.first_slot, ring::first_slot_offset);
  EXPECT_EQ(header.slot_bytes, ring::slot_bytes_for(128 << 20, 3));
  EXPECT_STREQ(header.vm, "t");
  EXPECT_EQ(header.guest_vectors, 1U);
  EXPECT_EQ(header.common_offset, 0U);
  EXPECT_EQ(header.common_bytes, 0U);
  const auto& vm_page = other_side::at<ring::VmPage>(guest.base, ring::vm_page_offset);
  EXPECT_EQ(vm_page.version, ring::vm_page_version);
  EXPECT_EQ(vm_page.answered, 0U);
  EXPECT_EQ(vm_page.gpu_count, 0U) << "nobody has asked";
}

TEST(Ivshmem, ClientsHaveIdsOfTheirOwnAndDoNotHearOfEachOther) {
  Broker broker;
  Client first(broker.socket_path()), second(broker.socket_path());
  ASSERT_TRUE(first.greet(3));
  ASSERT_TRUE(second.greet(3));
  EXPECT_EQ(first.peer, ring::first_guest_peer);
  EXPECT_EQ(second.peer, ring::first_guest_peer + 1);
  EXPECT_FALSE(first.receive(100));
  // The broker does not reuse an id at once, since a slot's entry may still name the id's last holder.
  first.hang_up();
  Client third(broker.socket_path());
  ASSERT_TRUE(third.greet(3));
  EXPECT_EQ(third.peer, ring::first_guest_peer + 2);
}

TEST(Ivshmem, AClientThatSpeaksIsDropped) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(send(guest.socket_fd(), "hello", 5, MSG_NOSIGNAL), 5);
  char byte;
  EXPECT_LE(recv(guest.socket_fd(), &byte, 1, 0), 0);
}

TEST(Ivshmem, OneConnectionTooManyIsRefused) {
  Broker broker("connections = 2");
  Client first(broker.socket_path()), second(broker.socket_path());
  ASSERT_TRUE(first.greet(3));
  ASSERT_TRUE(second.greet(3));
  Client third(broker.socket_path());
  EXPECT_TRUE(third.is_ended());
  EXPECT_TRUE(broker.eventually_logged("a connection was refused"));
  first.hang_up();
  EXPECT_TRUE(eventually([&] {
    Client again(broker.socket_path());
    return again.greet(3);
  }));
}

// The broker stores each greeted connection with systemd, and removes it at the connection's end.
TEST(Ivshmem, SoManyConnectionsASecondAreTaken) {
  Broker broker("\n[vm.u]");
  const auto began = std::chrono::steady_clock::now();
  constexpr int all = 300;
  for (int i = 0; i < all; ++i) {
    Client client(broker.socket_path());
    ASSERT_TRUE(client.receive()) << "connection " << i << " waits and is served";
  }
  Client other(broker.folder / "u.sock");
  EXPECT_TRUE(other.greet(3)) << "another VM has a pace of its own";
  constexpr double burst = 200, per_second = 200;
  EXPECT_LE(all, burst + per_second * seconds_since(began) + 1);
}

TEST(Ivshmem, TheSocketHasTheConfiguredMode) {
  Broker broker;
  struct stat status {};
  ASSERT_EQ(stat(broker.socket_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
}

TEST(Ivshmem, RefusedConnectionsWithoutEndDoNotFillTheLog) {
  Broker broker("connections = 1");
  Client first(broker.socket_path());
  ASSERT_TRUE(first.greet(3));
  const auto began = std::chrono::steady_clock::now();
  const auto refuse = [&] {
    Client one_more(broker.socket_path());
    EXPECT_TRUE(one_more.is_ended());
  };
  for (int i = 0; i < 50; ++i) refuse();
  EXPECT_TRUE(broker.eventually_logged("a connection was refused: there are 1 already\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  refuse();
  EXPECT_TRUE(broker.eventually_logged(" more such lines were left out before)\n"));
  const std::size_t lines = broker.times_logged("a connection was refused");
  EXPECT_LE(static_cast<double>(lines), 1 + seconds_since(began)) << "a line a second";
}

// A file's mode, user and group.
std::string access_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  char text[64];
  snprintf(text, sizeof text, "%04o %u:%u", status.st_mode & 0777, status.st_uid, status.st_gid);
  return text;
}
const std::string own = " " + std::to_string(geteuid()) + ":" + std::to_string(getegid());

void become_nobody() {
  if (geteuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)) _exit(124);
}

TEST(Access, EverySocketIsTheBrokersOwnByDefault) {
  Broker broker("[vm.u]\nsocket_mode = \"0600\"");
  EXPECT_EQ(access_of(broker.socket_path()), "0660" + own);
  EXPECT_EQ(access_of(broker.folder / "u.sock"), "0600" + own);
  EXPECT_EQ(access_of(broker.folder / "ivgpud.status"), "0660" + own);
  EXPECT_EQ(access_of(broker.folder / "ivgpud.trace"), "0600" + own) << "it shows what all VMs do";
}

TEST(Access, SocketsHaveOwnerGroupAndModeOfTheirOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Broker broker(
      "socket_owner = \"70001\"\nsocket_group = \"daemon\"\nsocket_mode = \"0640\"\n[vm.u]", "", [] {}, "",
      "socket_owner = \"nobody\"\nsocket_group = \"70009\"\nsocket_mode = \"0600\"\n"
      "trace_owner = \"daemon\"\ntrace_group = \"70007\"\ntrace_mode = \"0440\"");
  EXPECT_EQ(broker.ready, "ready\n");
  EXPECT_EQ(access_of(broker.socket_path()), "0640 70001:1");
  EXPECT_EQ(access_of(broker.folder / "u.sock"), "0600 65534:70009");
  EXPECT_EQ(access_of(broker.folder / "ivgpud.status"), "0600 65534:70009");
  EXPECT_EQ(access_of(broker.folder / "ivgpud.trace"), "0440 1:70007");
}

// Each VM's socket admits only the VM's own user.
TEST(Access, AUserIsLetIntoItsOwnVmsSocketOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be others";
  Broker broker(
      "socket_owner = \"70001\"\nsocket_mode = \"0600\"\n[vm.u]\nsocket_owner = \"70002\"\n"
      "socket_mode = \"0600\"");
  const auto may_connect = [&](uid_t user, const std::string& name) {
    return run_in_child([&] {
      if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 2;
      return Client(broker.folder / name).connected ? 0 : 1;
    });
  };
  EXPECT_EQ(may_connect(70001, "t.sock"), 0);
  EXPECT_EQ(may_connect(70001, "u.sock"), 1);
  EXPECT_EQ(may_connect(70002, "t.sock"), 1);
  EXPECT_EQ(may_connect(70002, "u.sock"), 0);
  EXPECT_EQ(may_connect(70001, "ivgpud.trace"), 1);
}

TEST(Access, WhatCannotBeIsOneSentence) {
  struct Bad {
    std::string vm, broker, says;
  };
  const std::string none = "there is no such user\n", no_group = "there is no such group\n";
  for (const Bad& bad :
       {Bad{"socket_owner = \"no-such-one\"", "", "/t.sock: socket_owner = \"no-such-one\": " + none},
        Bad{"socket_group = \"no-such-one\"", "", "/t.sock: socket_group = \"no-such-one\": " + no_group},
        Bad{"socket_owner = \"4294967295\"", "", "/t.sock: socket_owner = \"4294967295\": " + none},
        Bad{"socket_owner = \"-5\"", "", "/t.sock: socket_owner = \"-5\": " + none},
        Bad{"", "trace_owner = \"no-such-one\"", "/ivgpud.trace: trace_owner = \"no-such-one\": " + none},
        Bad{"", "trace_group = \"no-such-one\"", "/ivgpud.trace: trace_group = \"no-such-one\": " + no_group}}) {
    Broker broker(
        bad.vm, "", [] {}, "", bad.broker);
    EXPECT_EQ(broker.wait(), 1);
    EXPECT_NE(broker.log().find(bad.says), std::string::npos) << broker.log();
    EXPECT_NE(access(broker.socket_path().c_str(), F_OK), 0);
  }
}

TEST(Access, WhatOnlyRootCanGiveIsRefusedWithoutIt) {
  Broker owner("socket_owner = \"70001\"", "", become_nobody);
  EXPECT_EQ(owner.wait(), 1);
  EXPECT_TRUE(owner.eventually_logged(
      "/t.sock: socket_owner = \"70001\": Operation not permitted; only root may give a socket to "
      "another user\n"));
  Broker group("socket_group = \"70001\"", "", become_nobody);
  EXPECT_EQ(group.wait(), 1);
  EXPECT_TRUE(group.eventually_logged("/t.sock: socket_group = \"70001\": Operation not permitted\n"));
  Broker users("", "", become_nobody, "", "worker_uids = \"70000-70009\"");
  EXPECT_EQ(users.wait(), 1);
  EXPECT_EQ(users.log(),
            "ivgpud: [broker] worker_uids: only root can give workers users of their own; start ivgpud as "
            "root or leave worker_uids out\n");
}

TEST(Ivshmem, ASecondBrokerRefusesAndTheFirstGoesOn) {
  Broker broker;
  const Outcome second = run_ivgpud({"--config", broker.folder / "c.toml"});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.text.find("t.sock: another ivgpud serves this socket"), std::string::npos) << second.text;
  Client guest(broker.socket_path());
  EXPECT_TRUE(guest.greet(3));
}

TEST(Ivshmem, ARegionThatCannotBeMadeIsOneSentence) {
  Broker broker("", "", [] {
    const rlimit limit{16 << 20, 16 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(broker.wait(), 1);
  EXPECT_EQ(
      broker.log(),
      "ivgpud: VM t: a region of 128 MiB cannot be made: sizing and sealing: File too large; `ulimit -f` bounds the "
      "size of files, as LimitFSIZE= of a service does\n");
  EXPECT_FALSE(std::filesystem::exists(broker.socket_path()));
}

TEST(Ivshmem, AStaleSocketIsReplaced) {
  Broker broker;
  broker.terminate(SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(broker.socket_path()));
  broker.again();
  EXPECT_EQ(broker.ready, "ready\n");
  EXPECT_TRUE(Client(broker.socket_path()).greet(3));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Ivshmem, QemuTakesTheRegionAsBar2) {
  Broker broker;
  // QEMU's machine stays stopped, since the device reads the greeting while QEMU creates it.
  const std::string command = "(echo info pci; echo quit) | timeout 60 " QEMU
                              " -nodefaults -display none -machine q35 -accel tcg -S -monitor stdio -chardev "
                              "socket,id=c,path=" +
                              broker.socket_path() + " -device ivshmem-doorbell,chardev=c,vectors=1";
  const Outcome outcome = run_program("/bin/sh", {"-c", command});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PCI device 1af4:1110"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("BAR2: 64 bit prefetchable memory at 0xffffffffffffffff [0x07fffffe]"), std::string::npos)
      << outcome.text;  // 128 MiB, not mapped yet
  EXPECT_TRUE(broker.eventually_logged("is gone: its connection was closed"));
}

TEST(Ivshmem, AFileInTheSocketsPlaceIsNotTouched) {
  Folder folder;
  folder.write("libcuda.so.1", "");
  folder.write("t.sock", "precious");
  const std::string config = folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                                        "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                                        (folder / "libcuda.so.1") + "\"\n[vm.t]\n");
  const Outcome outcome = run_ivgpud({"--config", config});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("is in the way and no socket"), std::string::npos) << outcome.text;
  EXPECT_EQ(folder.read("t.sock"), "precious");
}

}  // namespace
