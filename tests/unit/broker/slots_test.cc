// The life of a slot. The tests use a real ivgpud, workers with the real start and jail, and a client that behaves as
// guests do and as they must not. They depend on processes, sockets and time, but on no GPU.
#include <sys/stat.h>

#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

bool all_zero(const std::byte* from, std::size_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Slots, OneSpareIsReadyAndDescribed) {
  Broker broker;
  EXPECT_EQ(broker.ready, "ready\n");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto& header = *reinterpret_cast<ring::SlotHeader*>(guest.slot(0));
  EXPECT_EQ(header.magic, ring::slot_magic);
  EXPECT_EQ(header.version, ring::layout_version);
  EXPECT_EQ(header.channels, ring::max_channels);
  EXPECT_EQ(header.arena_offset, ring::arena_offset);
  EXPECT_EQ(header.arena_bytes, guest.header().slot_bytes - ring::arena_offset);
  EXPECT_EQ(reinterpret_cast<ring::DevicePage*>(guest.slot(0) + ring::device_page_offset)->driver_version, 4242U);
  EXPECT_EQ(guest.word(1).state, SlotState::Empty);
  EXPECT_EQ(broker.workers().size(), 1U);
}

TEST(Slots, AClaimStartsTheNextSpare) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
  EXPECT_EQ(guest.word(2).state, SlotState::Empty);
}

TEST(Slots, AReleasedSlotIsScrubbedAndComesBackUnderTheNextEpoch) {
  Broker broker("spare = 3");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto slot = guest.claim();
  ASSERT_TRUE(slot);
  ASSERT_TRUE(guest.tell(*slot, 'f'));  // the worker overwrites the slot
  memset(guest.slot(*slot) + ring::first_channel, 0x77, 4096);
  const ring::SlotWord before = guest.word(*slot);
  ASSERT_TRUE(guest.step(*slot, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(eventually([&] { return guest.word(*slot).epoch == before.epoch + 1; }));
  ASSERT_TRUE(guest.becomes(*slot, SlotState::Ready));
  EXPECT_TRUE(all_zero(guest.slot(*slot) + ring::first_channel, guest.header().slot_bytes - ring::first_channel));
  EXPECT_EQ(guest.entry(*slot).owner.peer, 0U);
  EXPECT_EQ(guest.entry(*slot).owner.pid, 0U);
}

TEST(Slots, ALargeSlotIsScrubbedToItsEnd) {
  Broker broker("region_size = \"1GiB\"");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto slot = guest.claim();
  ASSERT_TRUE(slot);
  const std::size_t bytes = guest.header().slot_bytes, step = 1 << 20;
  for (std::size_t at = ring::arena_offset; at < bytes; at += step) guest.slot(*slot)[at] = std::byte{0x77};
  guest.slot(*slot)[bytes - 1] = std::byte{0x77};
  const std::uint32_t epoch = guest.word(*slot).epoch;
  ASSERT_TRUE(guest.step(*slot, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(eventually([&] { return guest.word(*slot).epoch == epoch + 1; }));
  for (std::size_t at = ring::arena_offset; at < bytes; at += step) ASSERT_EQ(guest.slot(*slot)[at], std::byte{0});
  EXPECT_EQ(guest.slot(*slot)[bytes - 1], std::byte{0});
}

// The bytes of memory that the client's region occupies.
std::size_t taken(const Client& client) {
  struct stat status {};
  EXPECT_EQ(fstat(client.memfd, &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

// A guest dirties 64 slots and releases them at once. The broker scrubs the slots over many loop iterations, and
// answers other VMs in each iteration. Load or a sanitizer can only add iterations.
TEST(Slots, AVmThatLetsGoOfAllItsMemoryDoesNotSilenceTheBroker) {
  Broker broker("region_size = \"2GiB\"\nslots = 64\n[vm.other]");
  Client hostile(broker.socket_path()), other(broker.folder / "other.sock");
  ASSERT_TRUE(hostile.greet(64));
  ASSERT_TRUE(other.greet(3));
  for (std::size_t at = ring::first_slot_offset; at < hostile.bytes; at += ring::page) hostile.base[at] = std::byte{1};
  ASSERT_GT(taken(hostile), std::size_t{2000} << 20);
  const std::uint64_t before = loop_iterations(broker);
  ASSERT_GT(before, 0U);
  hostile.hang_up();
  ASSERT_TRUE(eventually([&] { return taken(hostile) < std::size_t{64} << 20; }));
  // Each iteration scrubs for 2 ms. All other events in this test take about ten iterations.
  EXPECT_GE(loop_iterations(broker) - before, 30U);
  EXPECT_TRUE(other.is_answered());
  EXPECT_EQ(hostile.base[hostile.bytes - 1], std::byte{0});
}

TEST(Slots, AllSlotsCanBeTakenAndNoMore) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(guest.claim());
  EXPECT_EQ(guest.count(SlotState::Claimed), 3U);
  other_side::shared(guest.header().wanted).fetch_add(1);
  guest.ring_peer(ring::peer_broker);
  ASSERT_TRUE(guest.step(1, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(guest.becomes(1, SlotState::Ready));
}

TEST(Slots, AWantedSlotIsStartedWithoutASpare) {
  Broker broker("spare = 0");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(guest.count(SlotState::Empty), 3U);
  other_side::shared(guest.header().wanted).fetch_add(1);
  guest.ring_peer(ring::peer_broker);
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  ASSERT_EQ(guest.claim(), 0U);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(guest.count(SlotState::Empty), 2U);
}

TEST(Slots, AWorkerThatDiesMakesItsSlotDead) {
  for (const char how : {'x', 'a'}) {
    Broker broker;
    Client guest(broker.socket_path());
    ASSERT_TRUE(guest.greet(3));
    ASSERT_EQ(guest.claim(), 0U);
    ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
    guest.command(0)[0] = how;
    guest.ring_peer(ring::peer_of_slot(0));
    ASSERT_TRUE(guest.becomes(0, SlotState::Dead));
    EXPECT_TRUE(broker.eventually_logged(how == 'x' ? "its guest broke the protocol" : "killed by signal 6 (ABRT)"));
    EXPECT_EQ(guest.word(1).state, SlotState::Ready);
    // The slot stays Dead until the slot's guest releases it.
    ASSERT_TRUE(guest.step(0, SlotState::Dead, SlotState::Released));
    EXPECT_TRUE(guest.becomes(0, SlotState::Empty));
    EXPECT_EQ(guest.word(0).epoch, 1U);
  }
}

// A guest process that dies after its claim, before it stores its identity.
TEST(Slots, OneThatNobodyOwnsComesBackThoughItsWorkerDies) {
  Broker broker("slots = 2\nspare = 2");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(2));
  for (std::uint32_t k = 0; k < 2; ++k) {
    ASSERT_TRUE(guest.becomes(k, SlotState::Ready));
    ASSERT_TRUE(guest.step(k, SlotState::Ready, SlotState::Claimed));
  }
  guest.command(1)[0] = 'x';
  guest.ring_peer(ring::peer_of_slot(1));
  ASSERT_TRUE(guest.becomes(1, SlotState::Dead));
  for (std::uint32_t k = 0; k < 2; ++k) EXPECT_TRUE(guest.becomes(k, SlotState::Ready)) << k;
}

TEST(Slots, AnOwnerThatIsWrittenOverDoesNotKeepTheSlot) {
  Broker broker;
  Client holder(broker.socket_path());
  ASSERT_TRUE(holder.greet(3));
  std::uint32_t slot = 0;
  {
    Client guest(broker.socket_path());
    ASSERT_TRUE(guest.greet(3));
    const auto claimed = guest.claim();
    ASSERT_TRUE(claimed);
    slot = *claimed;
    // The broker answers at the beginning of a look. At the second answer, the first look is complete and has found the
    // owner.
    ASSERT_TRUE(guest.is_answered() && guest.is_answered());
    guest.entry(slot).owner.peer = holder.peer;
  }
  EXPECT_TRUE(eventually([&] { return holder.word(slot).epoch == 1; }));
  // This owner was never connected.
  const auto other = holder.claim(54321);
  ASSERT_TRUE(other);
  const std::uint32_t epoch = holder.word(*other).epoch;
  EXPECT_TRUE(eventually([&] { return holder.word(*other).epoch == epoch + 1; }));
}

TEST(Slots, AHeaderThatIsWrittenOverComesBack) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const std::uint64_t generation = guest.header().generation;
  memset(static_cast<void*>(&guest.header()), 0xee, 112);  // up to the end of the name
  guest.ring_peer(ring::peer_broker);
  ASSERT_TRUE(eventually([&] { return other_side::shared(guest.header().magic).load() == ring::region_magic; }));
  EXPECT_EQ(guest.header().slot_count, 3U);
  EXPECT_EQ(guest.header().generation, generation);
  EXPECT_EQ(guest.header().region_bytes, guest.bytes);
  EXPECT_STREQ(guest.header().vm, "t");
}

TEST(Slots, WhatIsWrittenWhereNobodyIsGoesWithTheLastGuest) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto blocks = [&] {
    struct stat status {};
    fstat(guest.memfd, &status);
    return status.st_blocks;
  };
  const auto before = blocks();
  const std::uint32_t epoch = guest.word(0).epoch;
  memset(guest.slot(0) + ring::arena_offset, 0x77, ring::huge_page);  // overwrites a ready slot
  // Overwrites two empty slots and the memory behind them.
  memset(guest.slot(1), 0x77, 2 * guest.header().slot_bytes);
  memset(guest.base + ring::huge_page / 2, 0x77, ring::huge_page / 2);  // overwrites the memory behind the directory
  EXPECT_GT(blocks(), before + (40 << 11));
  guest.hang_up();
  EXPECT_TRUE(eventually([&] { return blocks() <= before + 64; })) << before << " " << blocks();
  EXPECT_TRUE(eventually([&] { return guest.word(0).epoch == epoch + 1; })) << "once all is scrubbed";
}

TEST(Slots, WorkersThatWereStartedForNobodyGoWithTheLastGuest) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  other_side::shared(guest.header().wanted).fetch_add(1000);
  guest.ring_peer(ring::peer_broker);
  ASSERT_TRUE(eventually([&] { return guest.count(SlotState::Ready) == 3; }));
  guest.hang_up();
  EXPECT_TRUE(eventually([&] { return guest.count(SlotState::Ready) == 1 && guest.count(SlotState::Empty) == 2; }));
  EXPECT_TRUE(eventually([&] { return broker.workers().size() == 1; }));
  EXPECT_FALSE(broker.logged("the next is started in"));
}

TEST(Slots, AWorkerThatDiesUnclaimedIsReplaced) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto workers = broker.workers();
  ASSERT_EQ(workers.size(), 1U);
  kill(workers[0], SIGKILL);
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  EXPECT_TRUE(guest.becomes(0, SlotState::Ready));
}

// Guests hold the eventfds that the broker reads.
TEST(Slots, ADoorbellMadeToBlockDoesNotStopTheBroker) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  int made = 0;
  for (const Client::Message& message : guest.messages)
    made += message.fd >= 0 && message.fd != guest.memfd && fcntl(message.fd, F_SETFL, 0) == 0;
  ASSERT_EQ(made, 1 + 3 + 1);
  const auto slot = guest.claim();
  ASSERT_TRUE(slot);
  const std::uint32_t epoch = guest.word(*slot).epoch;
  ASSERT_TRUE(guest.step(*slot, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(eventually([&] { return guest.word(*slot).epoch == epoch + 1; }));
  EXPECT_TRUE(guest.claim());
}

TEST(Slots, AWorkerHasItsSlotsInterruptAndNoOther) {
  Broker broker("vectors = 2\nspare = 3");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3, 2));
  for (std::uint32_t k = 0; k < 3; ++k)
    ASSERT_TRUE(eventually([&] { return guest.word(k).state == SlotState::Ready; }));
  for (std::uint32_t k = 0; k < 3; ++k) {
    ASSERT_EQ(guest.claim(), k);
    ASSERT_TRUE(guest.tell(k, 'i'));
    EXPECT_EQ(guest.command(k)[2], 'y');
    std::uint64_t count = 0;
    EXPECT_EQ(read(guest.interrupt(k % 2), &count, sizeof count), 8);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(read(guest.interrupt((k + 1) % 2), &count, sizeof count), -1) << k;
  }
}

// Worker and guest die together, and the broker learns of the worker's death first. With one slot the broker starts the
// next worker there at once, and must not mistake it for the dead worker.
TEST(Slots, AWorkerThatDiesWithItsGuestIsFollowedByOneOther) {
  Broker broker("slots = 1");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(1));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(broker.eventually_logged("slot 0 is claimed"));
  const auto workers = broker.workers();
  ASSERT_EQ(workers.size(), 1U);
  kill(broker.pid, SIGSTOP);
  kill(workers[0], SIGKILL);
  const ring::SlotWord now = guest.word(0);
  guest.state(0).store(now.with(SlotState::Released).word());  // without ringing the broker
  kill(broker.pid, SIGCONT);
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1 && guest.word(0).state == SlotState::Ready; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(broker.logged("the next is started in"));
  EXPECT_EQ(guest.word(0).epoch, 1U);
  EXPECT_EQ(guest.word(0).state, SlotState::Ready);
  EXPECT_EQ(broker.workers().size(), 1U);
}

TEST(Slots, AConnectionThatClosesReleasesItsSlotsOnly) {
  Broker broker;
  Client watcher(broker.socket_path());
  ASSERT_TRUE(watcher.greet(3));
  const auto kept = watcher.claim();
  ASSERT_TRUE(kept);
  std::optional<std::uint32_t> lost, dead;
  {
    Client guest(broker.socket_path());
    ASSERT_TRUE(guest.greet(3));
    lost = guest.claim();
    ASSERT_TRUE(lost);
    dead = guest.claim();
    ASSERT_TRUE(dead);
    guest.command(*dead)[0] = 'x';
    guest.ring_peer(ring::peer_of_slot(*dead));
    ASSERT_TRUE(guest.becomes(*dead, SlotState::Dead));
  }
  EXPECT_TRUE(eventually([&] { return watcher.word(*lost).epoch == 1 && watcher.word(*dead).epoch == 1; }));
  EXPECT_EQ(watcher.word(*kept).state, SlotState::Claimed);
  EXPECT_EQ(watcher.word(*kept).epoch, 0U);
}

TEST(Slots, AProcessThatDiesReleasesItsSlotsThoughItsConnectionIsStillHeld) {
  Broker broker;
  Client watcher(broker.socket_path());
  ASSERT_TRUE(watcher.greet(3));
  int pass[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pass), 0);
  const pid_t child = fork();
  if (child == 0) {
    Client guest(broker.socket_path());
    const bool claimed = guest.greet(3) && guest.claim().has_value();
    // A process that is not the guest keeps a copy of the connection.
    char byte = claimed ? 'k' : 'n';
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = guest.socket_fd();
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    sendmsg(pass[1], &message, 0);
    pause();
  }
  pollfd told{pass[0], POLLIN, 0};
  ASSERT_EQ(poll(&told, 1, deadline_ms), 1);
  ASSERT_TRUE(watcher.becomes(0, SlotState::Claimed));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return watcher.word(0).epoch == 1; }));
  close(pass[0]);
  close(pass[1]);
}

TEST(Slots, WordsThatMakeNoLegalStepArePutBack) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const std::uint32_t ready = guest.word(0).word(), empty = guest.word(1).word();
  for (const std::uint32_t bad : {0xffffffffU, ready + 0x100, guest.word(0).with(SlotState::Dead).word(),
                                  guest.word(0).with(SlotState::Empty).word()}) {
    guest.entry(0).state = bad;
    guest.entry(1).state = bad;
    guest.ring_peer(ring::peer_broker);
    EXPECT_TRUE(eventually([&] { return guest.entry(0).state == ready && guest.entry(1).state == empty; })) << bad;
  }
  EXPECT_EQ(broker.workers().size(), 1U);
  EXPECT_EQ(guest.claim(), 0U);
}

TEST(Slots, ScribblingOverEverythingHurtsOnlyTheScribbler) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t looks = guest.heartbeat().load();
  std::uint32_t noise = 1;
  const auto scribble = [&] {
    // Does not overwrite the header's constants, since this client needs them.
    for (std::size_t at = ring::page; at < 2 * ring::page; at += 4) {
      noise = noise * 1664525 + 1013904223;
      *reinterpret_cast<volatile std::uint32_t*>(guest.base + at) = noise % 3 == 0 ? noise : noise % 6;
    }
    other_side::shared(guest.header().wanted).fetch_add(noise);
    guest.ring_peer(ring::peer_broker);
  };
  ASSERT_TRUE(eventually([&] {
    for (int i = 0; i < 100; ++i) scribble();
    return guest.heartbeat().load() - looks >= 100;
  }));
  // Otherwise the slot would be lost.
  for (std::uint32_t k = 0; k < 3; ++k) other_side::shared(guest.entry(k).pinned).store(0);
  guest.ring_peer(ring::peer_broker);
  // Afterwards the state settles: the broker repairs the words, a guest can claim a slot, and the broker exits with
  // code 0.
  for (int i = 0; i < 20; ++i) {
    guest.ring_peer(ring::peer_broker);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto slot = guest.claim();
  ASSERT_TRUE(slot);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(guest.word(*slot).state, SlotState::Claimed);
  const std::size_t lines = broker.times_logged("put back");
  EXPECT_LE(static_cast<double>(lines), 1 + seconds_since(begin)) << "a line a second";
  EXPECT_EQ(broker.terminate(), 0);
}

// Counts the workers whose command line allows polling.
int workers_that_may_poll(const Broker& broker) {
  const std::string polls(
      "--spin-us\0"
      "70",
      12);
  int count = 0;
  for (const pid_t worker : broker.workers()) {
    std::ifstream file("/proc/" + std::to_string(worker) + "/cmdline");
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    count += words.find(polls) != std::string::npos;
  }
  return count;
}

// The limit holds under any load by guests. When a polling worker ends, another worker may poll.
TEST(Slots, NoMoreWorkersMayPollThanAreAllowed) {
  Broker broker("region_size = \"128MiB\"\nslots = 4\nspare = 3\nspin_threads = 1\nspin_us = 70");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto three_are_ready = [&] { return guest.count(SlotState::Ready) == 3; };
  ASSERT_TRUE(eventually(three_are_ready));
  EXPECT_EQ(workers_that_may_poll(broker), 1);
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    EXPECT_EQ(reinterpret_cast<const ring::SlotHeader*>(guest.slot(slot))->spin_us, 70u) << slot;
  ASSERT_EQ(guest.claim(), 0u);
  ASSERT_TRUE(eventually(three_are_ready));
  EXPECT_EQ(workers_that_may_poll(broker), 1);
  ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(eventually([&] { return broker.workers().size() == 3; }));
  EXPECT_EQ(workers_that_may_poll(broker), 0);
  ASSERT_TRUE(guest.claim());
  ASSERT_TRUE(eventually([&] { return three_are_ready() && broker.workers().size() == 4; }));
  EXPECT_EQ(workers_that_may_poll(broker), 1);
}

TEST(Slots, WhereNoWorkerMayPollNoGuestPolls) {
  Broker broker("spin_threads = 0\nspin_us = 70");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(1));
  ASSERT_TRUE(eventually([&] { return guest.count(SlotState::Ready) == 1; }));
  EXPECT_EQ(workers_that_may_poll(broker), 0);
  EXPECT_EQ(reinterpret_cast<const ring::SlotHeader*>(guest.slot(0))->spin_us, 0u);
}

// A guest claims and releases slots without pause. The broker limits starts, and serves the next guest in the queue.
TEST(Slots, EndlessClaimsAreLimitedAndOthersAreServed) {
  Broker broker("starts_per_second = 5\nstart_burst = 3\nslots = 2");
  Client greedy(broker.socket_path()), modest(broker.socket_path());
  ASSERT_TRUE(greedy.greet(2));
  ASSERT_TRUE(modest.greet(2));
  const auto begin = std::chrono::steady_clock::now();
  std::uint32_t claims = 0;
  EXPECT_TRUE(eventually([&] {
    for (std::uint32_t slot = 0; slot < 2; ++slot)
      if (greedy.step(slot, SlotState::Ready, SlotState::Claimed)) {
        ++claims;
        greedy.step(slot, SlotState::Claimed, SlotState::Released);
        other_side::shared(greedy.header().wanted).fetch_add(1);
        greedy.ring_peer(ring::peer_broker);
      }
    return claims >= 12;
  }));
  EXPECT_LE(claims, 3 + 5 * seconds_since(begin) + 2);
  EXPECT_TRUE(modest.claim());
}

TEST(Slots, TheHeartbeatAnswersARing) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(guest.is_answered()) << "no slot is held: the heart beats for a ring alone";
}

// Each heartbeat wakes the broker, so idle VMs and idle sessions must cause almost no heartbeats.
TEST(Slots, TheHeartBeatsByItselfOnceASecondWhileASlotIsHeldAndOnlyThen) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto beats = [&](int ms) {
    const std::uint64_t before = guest.heartbeat().load();
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return guest.heartbeat().load() - before;
  };
  EXPECT_EQ(beats(1200), 0U);
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t before = guest.heartbeat().load();
  ASSERT_TRUE(eventually([&] { return guest.heartbeat().load() - before >= 2; }));
  const std::uint64_t held = guest.heartbeat().load() - before;
  EXPECT_LE(static_cast<double>(held), 1 + seconds_since(begin));
  // Without ringing the broker: the next heartbeat finds the release.
  guest.state(0).store(guest.word(0).with(SlotState::Released).word());
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  EXPECT_EQ(beats(1200), 0U);
}

TEST(Broker, EndsInOrderWhenAsked) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Broker broker;
    Client guest(broker.socket_path());
    ASSERT_TRUE(guest.greet(3));
    ASSERT_EQ(guest.claim(), 0U);
    ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
    const auto workers = broker.workers();
    EXPECT_EQ(workers.size(), 2U);
    EXPECT_EQ(broker.terminate(signal), 0);
    EXPECT_EQ(guest.word(0).state, SlotState::Dead);
    for (const pid_t worker : workers) EXPECT_EQ(kill(worker, 0), -1);
    EXPECT_FALSE(std::filesystem::exists(broker.socket_path()));
    EXPECT_FALSE(std::filesystem::exists(broker.socket_path() + ".lock"));
  }
}

TEST(Broker, EndsWhenItsStarterHasGone) {
  Broker broker;
  broker.let_go();
  EXPECT_EQ(broker.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(broker.socket_path()));
}

TEST(Broker, KilledItTakesItsWorkersWithIt) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto workers = broker.workers();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(broker.terminate(SIGKILL), -1);
  EXPECT_TRUE(eventually([&] {
    std::ifstream stat("/proc/" + std::to_string(workers[0]) + "/stat");
    std::string pid, name, state;
    return !(stat >> pid >> name >> state) || state == "Z";
  }));
}

}  // namespace
