// The ivshmem server as its clients see it: bytes, descriptors, permissions, limits.
#include <sys/resource.h>

#include "broker_harness.h"

namespace {

using namespace broker_test;

TEST(Ivshmem, TheGreetingIsByteForByteThatOfTheProtocol) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  std::vector<std::pair<std::int64_t, bool>> seen;  // value, with a descriptor
  for (const auto& m : guest.messages) seen.emplace_back(m.value, m.fd >= 0);
  const std::vector<std::pair<std::int64_t, bool>> expected = {
      {0, false}, {65, false}, {-1, true},             // version, own id, region
      {0, true},  {1, true},   {2, true},  {3, true},  // the broker and the slots
      {65, true}};                                     // own doorbell: QEMU has one vector
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(guest.receive(100)) << "nothing follows";
}

TEST(Ivshmem, TheRegionIsSealedAndItsHeaderComplete) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_EQ(guest.bytes, 64U << 20);
  EXPECT_EQ(fcntl(guest.memfd, F_GET_SEALS) & 7, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_EQ(ftruncate(guest.memfd, 4096), -1);
  const ring::RegionHeader& header = guest.header();
  EXPECT_EQ(header.magic, ring::region_magic);
  EXPECT_EQ(header.version, ring::layout_version);
  EXPECT_EQ(header.slot_count, 3U);
  EXPECT_NE(header.generation, 0U);
  EXPECT_EQ(header.region_bytes, 64U << 20);
  EXPECT_EQ(header.first_slot, ring::first_slot_offset);
  EXPECT_EQ(header.slot_bytes, ring::slot_bytes_for(64 << 20, 3));
  EXPECT_STREQ(header.vm, "t");
}

TEST(Ivshmem, ClientsHaveIdsOfTheirOwnAndDoNotHearOfEachOther) {
  Broker broker;
  Client first(broker.socket_path()), second(broker.socket_path());
  ASSERT_TRUE(first.greet(3));
  ASSERT_TRUE(second.greet(3));
  EXPECT_EQ(first.peer, ring::first_guest_peer);
  EXPECT_EQ(second.peer, ring::first_guest_peer + 1);
  EXPECT_FALSE(first.receive(100));
  // An id is not used again at once: a slot may still name its last holder.
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
  EXPECT_FALSE(third.receive());
  EXPECT_TRUE(broker.logged("a connection was refused"));
  first.hang_up();
  EXPECT_TRUE(eventually([&] {
    Client again(broker.socket_path());
    return again.greet(3);
  }));
}

TEST(Ivshmem, TheSocketHasTheConfiguredMode) {
  Broker broker;
  struct stat status {};
  ASSERT_EQ(stat(broker.socket_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
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
  EXPECT_EQ(broker.log(), "ivgpud: VM t: a region of 64 MiB cannot be made: sizing and sealing: File too large\n");
  EXPECT_FALSE(std::filesystem::exists(broker.socket_path()));
}

TEST(Ivshmem, AStaleSocketIsReplaced) {
  Broker broker;
  broker.terminate(SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(broker.socket_path()));
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t next = fork();
  if (next == 0) {
    const std::string config = broker.folder / "c.toml", fd = std::to_string(ready[1]);
    execl(IVGPUD, "ivgpud", "--config", config.c_str(), "--ready-fd", fd.c_str(), nullptr);
    _exit(126);
  }
  close(ready[1]);
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  {
    Client guest(broker.socket_path());
    EXPECT_TRUE(guest.greet(3));
  }
  kill(next, SIGTERM);
  int status = 0;
  waitpid(next, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Ivshmem, QemuTakesTheRegionAsBar2) {
  Broker broker;
  // The machine is not started: the device reads the greeting while it is made.
  const std::string command = "(echo info pci; echo quit) | timeout 60 " QEMU
                              " -nodefaults -display none -machine q35 -accel tcg -S -monitor stdio -chardev "
                              "socket,id=c,path=" +
                              broker.socket_path() + " -device ivshmem-doorbell,chardev=c,vectors=1";
  const Outcome outcome = run_program("/bin/sh", {"-c", command});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PCI device 1af4:1110"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("BAR2: 64 bit prefetchable memory at 0xffffffffffffffff [0x03fffffe]"), std::string::npos)
      << outcome.text;  // not mapped yet; 64 MiB
  EXPECT_TRUE(broker.logged("is gone: its connection was closed"));
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
