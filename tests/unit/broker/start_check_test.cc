// `ivgpud --check` finds the problems that a start would meet: users, groups, sizes, huge pages and plain files. It
// changes nothing.
#include "host/broker/start_check.h"

#include <sys/stat.h>

#include "host/broker/region/region.h"
#include "host/broker/worker/cgroup.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using host::broker::check_start;
using host::broker::Config;
using host::broker::StartCheck;

// `keys`: keys of the table [broker]. `rest`: the tables behind it.
StartCheck look(const Folder& folder, const std::string& keys, const std::string& rest, const std::string& pools = "") {
  const std::string text =
      "[broker]\nruntime_dir = \"" + folder.path() + "\"\ncgroups = \"off\"\n" + keys + "\n" + rest;
  const Config config = host::broker::parse_config(text, "f.toml", 8).value();
  return check_start(config, pools.empty() ? folder / "no-pools" : pools);
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

// The only error that the check found.
std::string wrong(const Folder& folder, const std::string& keys, const std::string& rest,
                  const std::string& pools = "") {
  const StartCheck found = look(folder, keys, rest, pools);
  EXPECT_EQ(found.wrong.size(), 1U) << all_of(found.wrong);
  return all_of(found.wrong);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* small = "[vm.a]\nregion_size = \"32MiB\"\nslots = 1\n";

// The largest region that fits into this machine once but not twice.
std::string largest_region() {
  std::size_t mebi = 16;
  while (mebi << 21 <= host::broker::memory_of_machine()) mebi *= 2;
  return std::to_string(mebi) + "MiB";
}

TEST(StartCheck, AGoodConfigurationHasNothingWrong) {
  const Folder folder;
  const StartCheck found = look(folder, "", small);
  EXPECT_EQ(all_of(found.wrong), "");
  EXPECT_EQ(all_of(found.notes), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(StartCheck, NamesUsersAndGroupsThatThereAreNot) {
  const Folder folder;
  EXPECT_EQ(wrong(folder, "socket_group = \"no-such-group\"", small),
            "[broker] socket_group = \"no-such-group\": there is no such group\n");
  EXPECT_EQ(wrong(folder, "trace_owner = \"no-such-user\"", small),
            "[broker] trace_owner = \"no-such-user\": there is no such user\n");
  EXPECT_EQ(wrong(folder, "", std::string(small) + "socket_owner = \"no-such-user\""),
            "[vm.a] socket_owner = \"no-such-user\": there is no such user\n");
}

TEST(StartCheck, AFolderForSocketsMustBePossible) {
  const Folder folder;
  folder.write("file", "");
  const auto parsed = [](const std::string& runtime_dir) {
    return host::broker::parse_config("[broker]\nruntime_dir = \"" + runtime_dir + "\"\n" + small, "f.toml", 8).value();
  };
  Config config = parsed(folder.path() + "/file");
  EXPECT_TRUE(has(all_of(check_start(config).wrong), "cannot be made or written to by this user"));
  const StartCheck found = look(folder, "", "[vm." + std::string(63, 'x') + "]\nregion_size = \"32MiB\"\nslots = 1");
  EXPECT_EQ(all_of(found.wrong), "");
  config = parsed("/tmp/" + std::string(110, 'x'));
  EXPECT_TRUE(has(all_of(check_start(config).wrong), "a socket's path has 107 characters at most"));
}

TEST(StartCheck, ARegionMustFitIntoTheMachine) {
  const Folder folder;
  EXPECT_TRUE(has(wrong(folder, "", "[vm.a]\nregion_size = \"1TiB\""), "VM a: a region of 1048576 MiB cannot be made"));
  const std::string region = "region_size = \"" + largest_region() + "\"\n";
  const StartCheck two = look(folder, "", "[vm.a]\n" + region + "[vm.b]\n" + region);
  EXPECT_EQ(all_of(two.wrong), "");
  EXPECT_TRUE(has(all_of(two.notes), "they cannot all be filled")) << all_of(two.notes);
}

TEST(StartCheck, HugePagesAreCountedForAllVmsTogether) {
  const Folder folder;
  const std::string pool = folder / "hugepages-2048kB";
  std::filesystem::create_directory(pool);
  const auto pages = [&](const char* name, int n) {
    folder.write(std::string("hugepages-2048kB/") + name + "_hugepages", std::to_string(n) + "\n");
  };
  const std::string vms = "[defaults]\nregion_size = \"32MiB\"\nslots = 1\nhuge_pages = true\n[vm.a]\n[vm.b]\n";
  pages("free", 31);
  EXPECT_TRUE(has(wrong(folder, "", vms, folder.path()), "need 32 pages of 2048 KiB, and 31 are free"));
  pages("free", 32);
  EXPECT_EQ(all_of(look(folder, "", vms, folder.path()).wrong), "");
  pages("resv", 2);
  EXPECT_TRUE(has(wrong(folder, "", vms, folder.path()), "and 30 are free"));
  pages("nr_overcommit", 2);
  EXPECT_EQ(all_of(look(folder, "", vms, folder.path()).wrong), "");
  pages("resv", 99);  // more pages than exist
  EXPECT_TRUE(has(wrong(folder, "", vms, folder.path()), "and 0 are free"));
}

std::string plain(const std::string& file, const std::string& size = "32MiB") {
  return "[vm.a]\nregion_size = \"" + size + "\"\nslots = 1\ntransport = \"plain\"\nplain_file = \"" + file + "\"\n";
}

TEST(StartCheck, APlainFileMustBePossible) {
  const Folder folder;
  EXPECT_TRUE(has(wrong(folder, "", plain("/proc/ivgpu")), "it must lie in a file system in memory"));
  EXPECT_TRUE(has(wrong(folder, "", plain("/nowhere/ivgpu")), "No such file or directory"));
  const std::string file = "/dev/shm/ivgpu-test-" + std::to_string(getpid()) + "-check";
  EXPECT_EQ(all_of(look(folder, "", plain(file)).wrong), "");
  EXPECT_FALSE(std::filesystem::exists(file));
  std::filesystem::create_directory(file);
  EXPECT_TRUE(has(wrong(folder, "", plain(file)), "cannot be made: a folder of user " + std::to_string(geteuid())));
  std::filesystem::remove(file);
  std::ofstream(file) << "left by a broker that was killed";
  EXPECT_EQ(all_of(look(folder, "", plain(file)).wrong), "");
  EXPECT_TRUE(std::filesystem::exists(file)) << "a check removes nothing";
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(has(wrong(folder, "", plain(file)), "user 65534 has made one"));
  }
  std::filesystem::remove(file);
}

TEST(StartCheck, PlainFilesMustHaveRoomTogether) {
  const Folder folder;
  std::string vms = "[defaults]\ntransport = \"plain\"\nslots = 1\nregion_size = \"" + largest_region() + "\"\n";
  for (int i = 0; i < 16; ++i)
    vms += "[vm.a" + std::to_string(i) + "]\nplain_file = \"/dev/shm/ivgpu-test-" + std::to_string(i) + "\"\n";
  EXPECT_TRUE(has(wrong(folder, "", vms), "MiB left; give it more"));
}

TEST(StartCheck, ControlGroupsThatAreRequiredMustBePossible) {
  const Folder folder;
  Config config =
      host::broker::parse_config("[broker]\nruntime_dir = \"" + folder.path() + "\"\ncgroups = \"required\"\n" + small,
                                 "f.toml", 8)
          .value();
  const std::string missing = host::broker::groups_missing_here();
  const StartCheck found = check_start(config);
  EXPECT_EQ(all_of(found.wrong), missing.empty() ? "" : "VMs get no control groups: " + missing + "\n");
  EXPECT_TRUE(!missing.empty() || has(all_of(found.notes), "Delegate=yes")) << all_of(found.notes);
  config.broker.cgroups = "best-effort";
  EXPECT_EQ(all_of(check_start(config).wrong), "");
  EXPECT_EQ(check_start(config).notes.size(), missing.empty() ? 0U : 1U);
}

// The check must not count the memory of a running broker against the same configuration.
TEST(StartCheck, ARunningBrokersMemoryIsNotMissing) {
  Broker broker;
  const std::string vm = "[vm.t]\nregion_size = \"128MiB\"\nslots = 3\nhuge_pages = true\n";
  const StartCheck found = look(broker.folder, "", vm);
  EXPECT_EQ(all_of(found.wrong), "");
  EXPECT_TRUE(has(all_of(found.notes), "serves " + broker.folder.path() + " already")) << all_of(found.notes);
}

TEST(CommandLine, CheckEndsAsTheStartWould) {
  const Folder folder;
  folder.write("libcuda.so.1", "");
  const std::string file = folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                                      "\"\nsocket_group = \"no-such-group\"\nworker = \"" FAKE_WORKER
                                                      "\"\n[gpu]\nlibrary = \"" +
                                                      (folder / "libcuda.so.1") + "\"\n" + small);
  const Outcome checked = run_ivgpud({"--check", "--config", file});
  EXPECT_EQ(checked.code, 1) << checked.text;
  EXPECT_TRUE(
      has(checked.text, "ivgpud: " + file + ": [broker] socket_group = \"no-such-group\": there is no such group"));
  EXPECT_FALSE(has(checked.text, "good"));
  EXPECT_EQ(run_ivgpud({"--config", file}).code, 1);
}

}  // namespace
