// A VM with an ivshmem-plain device: its memory under a path, doorbell bits that the broker polls, and the end of a VM
// that no event reports. The tests use a real ivgpud and fake workers, and stand in for the VM.
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "host/broker/region/plain_file_space.h"
#include "host/broker/region/plain_memory.h"
#include "host/broker/region/region.h"
#include "tests/child.h"
#include "tests/error_of.h"
#include "tests/unit/broker/opened_memory.h"

namespace {

using namespace broker_test;
using ring::SlotState;

std::string plain(const std::string& file, const std::string& more = "") {
  return "transport = \"plain\"\nplain_file = \"" + file + "\"\n" + more;
}

TEST(Plain, AVmIsServedThroughAFile) {
  const std::string file = memory_file("served");
  {
    Broker broker(plain(file));
    struct stat status {};
    ASSERT_EQ(stat(file.c_str(), &status), 0) << broker.log();
    EXPECT_EQ(status.st_mode & 0777, 0660U);
    EXPECT_EQ(status.st_size, 128 << 20);
    OpenedMemory vm(file);
    ASSERT_TRUE(vm.there());
    EXPECT_EQ(vm.header().no_doorbell, 1U);
    EXPECT_EQ(vm.header().guest_vectors, 0U);
    ASSERT_TRUE(vm.claim(0, 7));
    EXPECT_TRUE(vm.becomes(1, SlotState::Ready)) << "the claim was not heard";
    vm.command(0)[0] = 'p';  // the slot's worker answers the doorbell
    vm.ring_peer(ring::peer_of_slot(0));
    EXPECT_TRUE(eventually([&] { return vm.command(0)[1] == 'k'; })) << "the worker was not rung";
    EXPECT_EQ(broker.terminate(), 0);
  }
  EXPECT_NE(access(file.c_str(), F_OK), 0) << "the file was left behind";
}

TEST(Plain, AMemfdIsOpenedByALinkToTheProcessThatHasIt) {
  Broker broker("transport = \"plain\"");
  const std::string log = broker.log(), marker = "whose memory is ";
  const std::size_t at = log.find(marker);
  ASSERT_NE(at, std::string::npos) << log;
  const std::string path = log.substr(at + marker.size(), log.find('\n', at) - at - marker.size());
  EXPECT_EQ(path, broker.folder / "t.memory");
  EXPECT_EQ(std::filesystem::read_symlink(path).string().rfind("/proc/" + std::to_string(broker.pid) + "/fd/", 0), 0U);
  OpenedMemory vm(path);
  ASSERT_TRUE(vm.there());
  EXPECT_TRUE(vm.claim(0, 7));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready));
  const Outcome told = run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path()});
  EXPECT_NE(told.text.find("VM t: " + path), std::string::npos) << told.text;
}

TEST(Plain, AVmThatEndsGivesItsSlotsBack) {
  const std::string file = memory_file("ends");
  Broker broker(plain(file));
  OpenedMemory vm(file), watcher_opened_late(file);
  ASSERT_TRUE(vm.claim(0, 7));
  ASSERT_TRUE(vm.becomes(1, SlotState::Ready));
  ASSERT_TRUE(broker.eventually_logged("t: a VM has opened its memory"));
  std::this_thread::sleep_for(std::chrono::milliseconds(2600));  // longer than the grace period of an invalid owner
  EXPECT_TRUE(vm.becomes(0, SlotState::Claimed)) << "a slot was taken from a VM that lives";
  vm.end();
  watcher_opened_late.end();
  EXPECT_TRUE(broker.eventually_logged("t: the VM has ended"));
  EXPECT_TRUE(broker.eventually_logged(") ends after "));
}

TEST(Plain, RingingEverybodyAllTheTimeHurtsNobody) {
  const std::string file = memory_file("rings");
  Broker broker(plain(file, "doorbell_poll_us = 50"));
  OpenedMemory vm(file);
  ASSERT_TRUE(vm.there());
  for (int i = 0; i < 3000; ++i) {
    for (auto& word : vm.header().doorbell_bits) other_side::shared(word).store(~0ULL);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  EXPECT_TRUE(vm.claim(0, 7));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Plain, AFileOfADeadBrokerIsReplacedAndALivingOnesIsNot) {
  const std::string file = memory_file("left");
  {
    Broker killed(plain(file));
    killed.terminate(SIGKILL);
  }
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
  Broker broker(plain(file));
  ASSERT_EQ(broker.ready, "ready\n");
  const Outcome second = run_ivgpud(
      {"--config", broker.folder.write("d.toml", "[broker]\nruntime_dir = \"" + broker.folder.path() +
                                                     "/d\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                                     (broker.folder / "libcuda.so.1") + "\"\n[vm.t]\n" + plain(file))});
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(second.text, "ivgpud: VM t: plain_file = \"" + file +
                             "\" cannot be made: another ivgpud serves it, or another process has locked it: `fuser " +
                             file + "` names the process\n");
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
}

// ---- memory that another process removes ---------------------------------------------------------------------------

// Runs `act` as another user who is in the file's group.
bool as_another_user(const std::function<bool()>& act) {
  const auto as_other = [&] {
    const bool is_other = geteuid() != 0 || (setgroups(0, nullptr) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    return is_other && act() ? 0 : 1;
  };
  return run_in_child(as_other) == 0;
}

std::string group_of_others() { return geteuid() == 0 ? "socket_group = \"65534\"\n" : ""; }

bool is_served(const Broker& broker, const std::string& vm) {
  return run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path()}).text.find("VM " + vm + ":") !=
         std::string::npos;
}

TEST(Plain, AShrunkFileEndsItsVmAlone) {
  const std::string file = memory_file("shrunk"), other = memory_file("whole");
  Broker broker(plain(file, group_of_others()) + "[vm.u]\n" + plain(other));
  ASSERT_TRUE(as_another_user([&] { return truncate(file.c_str(), 0) == 0; }));
  EXPECT_TRUE(
      broker.eventually_logged("VM t is not served any more: its memory " + file +
                               " was shrunk, or its file system is full: end the VM; `ivgpu reload` then serves "
                               "it again\n"));
  OpenedMemory neighbour(other);
  EXPECT_TRUE(neighbour.claim(0)) << "the other VM is served";
  EXPECT_TRUE(neighbour.becomes(1, SlotState::Ready));
  EXPECT_TRUE(eventually([&] { return !is_served(broker, "t"); }));
  EXPECT_TRUE(is_served(broker, "u"));
  EXPECT_TRUE(eventually([&] { return access(file.c_str(), F_OK) != 0; }));
  EXPECT_EQ(run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()}).code, 0);
  OpenedMemory again(file);
  ASSERT_TRUE(again.there()) << "a reload serves it again";
  EXPECT_TRUE(again.claim(0));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Plain, AFileThatIsShrunkToAPartEndsItsVmAlone) {
  const std::string file = memory_file("part"), other = memory_file("beside");
  Broker broker(plain(file, group_of_others()) + "[vm.u]\n" + plain(other));
  OpenedMemory vm(file);
  ASSERT_TRUE(as_another_user([&] { return truncate(file.c_str(), 4 << 20) == 0; }));
  EXPECT_TRUE(broker.eventually_logged("VM t is not served any more: its memory " + file));
  EXPECT_TRUE(is_served(broker, "u"));
  EXPECT_EQ(broker.terminate(), 0);
}

// ---- the file itself -----------------------------------------------------------------------------------------------

std::string refusal(const std::string& path, const host::broker::FileAccess& access = {}) {
  return error_of(host::broker::make_plain_file(path, 1 << 20, access));
}

std::string in_the_way(const std::string& what, uid_t owner) {
  const passwd* const user = getpwuid(owner);
  return what + " of user " + std::to_string(owner) + (user != nullptr ? std::string(" (") + user->pw_name + ")" : "") +
         " is in the way: remove it, or name a file in a folder where nobody else may make any";
}

TEST(PlainFile, ReportsAnImpossibleRegionAndLeavesNothing) {
  Folder folder;
  EXPECT_EQ(refusal(folder / "no/such/folder"), "No such file or directory");
  const std::string link = memory_file("link"), target = folder.write("target", "keep me");
  std::filesystem::create_symlink(target, link);
  EXPECT_EQ(refusal(link), in_the_way("a symbolic link", geteuid()));
  EXPECT_EQ(folder.read("target"), "keep me");
  std::filesystem::remove(link);
  EXPECT_EQ(refusal(memory_file("group"), {0660, "", "no-such-group"}), "there is no group no-such-group");
  EXPECT_NE(access(memory_file("group").c_str(), F_OK), 0);
}

// QEMU opens the file with O_CREAT. If libvirt starts a VM before the broker, QEMU therefore creates the file as
// another user.
TEST(PlainFile, OneOfAnotherUserIsLeftAloneWithARemedy) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string file = memory_file("qemus");
  close(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  EXPECT_EQ(refusal(file),
            "user 65534 has made one: QEMU does where the VM is started before ivgpud; end the VM and remove the file");
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
}

// In a folder that all users can write, any user can create a file of this name first.
TEST(PlainFile, WhoHasItsNameFirstIsNamedWithARemedy) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string file = memory_file("squatted");
  const auto squat = [&](const char* what, const std::function<bool()>& make) {
    ASSERT_TRUE(as_another_user(make)) << what;
    EXPECT_EQ(refusal(file), in_the_way(what, 65534));
    struct stat status {};
    EXPECT_EQ(lstat(file.c_str(), &status), 0) << "it is somebody's";
    std::filesystem::remove(file);
  };
  squat("a folder", [&] { return mkdir(file.c_str(), 0777) == 0; });
  squat("a pipe", [&] { return mkfifo(file.c_str(), 0666) == 0; });
  squat("a symbolic link", [&] { return symlink("/dev/zero", file.c_str()) == 0; });
  squat("a symbolic link", [&] { return symlink("/nowhere/to/be/found", file.c_str()) == 0; });
  squat("a socket", [&] { return mknod(file.c_str(), S_IFSOCK | 0666, 0) == 0; });
}

// Any user who may open the file of a killed broker may hold its lock.
TEST(PlainFile, AForeignLockIsReportedAsItsPossibleCauses) {
  const std::string file = memory_file("locked");
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(refusal(file),
            "another ivgpud serves it, or another process has locked it: `fuser " + file + "` names the process");
  close(fd);
}

// Mounts a tmpfs of 200 MiB that ends with this process. Returns false where mounting is forbidden.
bool mount_small(const std::string& at) {
  if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("ivgpu-test", at.c_str(), "tmpfs", 0, "size=200m,mode=777") == 0;
}

host::broker::VmOptions of_size(const std::string& name, const std::string& file, std::int64_t bytes) {
  host::broker::VmOptions vm;
  vm.name = name, vm.plain_file = file, vm.region_size = bytes;
  return vm;
}

TEST(PlainFile, ThoseOfAllVmsMustFitTogether) {
  using host::broker::plain_files_fit;
  const std::int64_t half = std::int64_t{1} << 39;
  const std::string error = error_of(plain_files_fit(
      {of_size("a", memory_file("a"), half), of_size("m", "", half), of_size("b", memory_file("b"), half)}));
  EXPECT_EQ(error.rfind("the plain_file of a, b needs 1048576 MiB in all, and the file system of /dev/shm has ", 0), 0U)
      << error;
  EXPECT_NE(error.find(" MiB left; give it more (mount -o remount,size=...) or the VMs a smaller region_size"),
            std::string::npos);
  EXPECT_EQ(error_of(plain_files_fit({of_size("m", "", half)})), "") << "a memfd has no file system";
  EXPECT_EQ(error_of(plain_files_fit({of_size("a", "/no/such/folder/a", half)})), "") << "told when it is made";
  EXPECT_EQ(error_of(plain_files_fit({of_size("a", "/proc/a", half)})), "") << "told when it is made";
}

TEST(PlainFile, WhatADeadBrokerLeftIsRoomAndWhatOthersHaveIsNot) {
  Folder folder;
  if (!mount_small(folder.path())) GTEST_SKIP() << "this machine lets nobody mount a file system";
  const std::int64_t size = 128 << 20;
  const auto misfit = [&](const char* name) {
    return error_of(host::broker::plain_files_fit({of_size("a", folder / name, size)}));
  };
  EXPECT_EQ(misfit("mine"), "");
  const int fd = open((folder / "mine").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(fallocate(fd, 0, 0, size), 0);
  close(fd);
  EXPECT_EQ(misfit("mine"), "");
  EXPECT_NE(misfit("other"), "");
  umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(PlainFile, AVmWhoseFileDoesNotFitBesideTheOthersIsNotServed) {
  Folder folder;
  if (!mount_small(folder.path())) GTEST_SKIP() << "this machine lets nobody mount a file system";
  {
    Broker one(plain(folder / "t"));
    EXPECT_EQ(one.ready, "ready\n") << "128 MiB fit";
    EXPECT_EQ(one.terminate(), 0);  // the worker has exited, so no process holds a page of the file
  }
  Broker two(plain(folder / "t") + "[vm.u]\n" + plain(folder / "u"));
  EXPECT_EQ(two.ready, "ready\n") << "the one that fits is served";
  EXPECT_TRUE(
      two.eventually_logged("VM u is not served: the plain_file of t, u needs 256 MiB in all, and the file system of " +
                            folder.path() + " has 200 MiB left; give it more"));
  EXPECT_FALSE(std::filesystem::exists(folder / "u")) << "it would serve both, and one may end the other";
  EXPECT_TRUE(std::filesystem::exists(folder / "t"));
  EXPECT_EQ(two.terminate(), 0);
  umount2(folder.path().c_str(), MNT_DETACH);
}

// The start either allocates all pages that the broker touches, or fails with a message.
TEST(PlainFile, WithoutSpaceForTheHeaderAreaTheRegionIsNotMade) {
  Folder folder;
  if (!mount_small(folder.path())) GTEST_SKIP() << "this machine lets nobody mount a file system";
  const int filler = open((folder / "filler").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(fallocate(filler, 0, 0, (200 << 20) - (16 << 10)), 0);
  close(filler);
  host::broker::VmOptions vm = of_size("t", folder / "t", 128 << 20);
  vm.transport = "plain";
  EXPECT_EQ(error_of(host::broker::Region::create(vm, {})),
            "VM t: plain_file = \"" + (folder / "t") +
                "\" cannot be made: its file system has no room for the region's first " +
                std::to_string(ring::header_area_bytes >> 10) +
                " KiB: No space left on device; free some there, or give it more (mount -o remount,size=...)");
  EXPECT_FALSE(std::filesystem::exists(folder / "t"));
  umount2(folder.path().c_str(), MNT_DETACH);
}

// Another user with write access frees pages of the file, and fills the file system with another file.
TEST(PlainFile, PagesThatAFullFileSystemDoesNotGiveBackEndTheirVmAlone) {
  Folder folder;
  if (!mount_small(folder.path())) GTEST_SKIP() << "this machine lets nobody mount a file system";
  Broker broker(plain(folder / "t", group_of_others()) + "[vm.u]\ntransport = \"plain\"\n");
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  ASSERT_TRUE(as_another_user([&] {
    const int filler = open((folder / "filler").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int memory = open((folder / "t").c_str(), O_RDWR | O_CLOEXEC);
    const std::vector<char> some(1 << 20);
    // The test repeats both steps, since the broker may allocate a page again between them.
    for (int round = 0; round < 50; ++round) {
      if (fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 128 << 20) != 0) return false;
      while (write(filler, some.data(), some.size()) > 0) {
      }
    }
    return errno == ENOSPC;
  }));
  EXPECT_TRUE(broker.eventually_logged("VM t is not served any more: its memory " + (folder / "t")));
  EXPECT_TRUE(is_served(broker, "u"));
  EXPECT_EQ(broker.terminate(), 0);
  umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(PlainFile, OnADiskItIsRefused) {
  Folder folder;
  const Outcome kind = run_program("/usr/bin/stat", {"-f", "-c", "%T", folder.path()});
  if (kind.text == "tmpfs\n") GTEST_SKIP() << "/tmp is in memory here";
  EXPECT_EQ(refusal(folder / "disk"), "it must lie in a file system in memory: tmpfs, as /dev/shm is, or hugetlbfs");
  EXPECT_NE(access((folder / "disk").c_str(), F_OK), 0);
}

}  // namespace
