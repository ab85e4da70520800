// The search for ivgpu's files, and the private broker's configuration.
#include <gtest/gtest.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tools/ivgpu/support/broker.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/install.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/vm/guest.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

TEST(Install, TheBuildTree) {
  const TempDir root;
  const Install install = install_at(root.path() / "bin/ivgpu");
  EXPECT_EQ(install.broker, root.path() / "bin/ivgpud");
  EXPECT_EQ(install.check, root.path() / "bin/ivgpu-check");
  EXPECT_EQ(install.guest_lib, root.path() / "guest");
  EXPECT_EQ(install.sim_lib, root.path() / "simgpu");
  EXPECT_EQ(install.measure, root.path() / "libexec/ivgpu/ivgpu-measure");
  EXPECT_EQ(install.plot, root.path() / "libexec/ivgpu/plot");
  EXPECT_EQ(install.programs, root.path() / "programs");
  EXPECT_EQ(install.guest_image, root.path() / "share/ivgpu/guest-image");
  EXPECT_EQ(install.cache, root.path() / "guest-image");
}

TEST(Install, AnInstalledTreeKeepsItsLibrariesTogetherAndWritesElsewhere) {
  const TempDir root;
  fs::create_directories(root.path() / "lib/ivgpu");
  const Install install = install_at(root.path() / "bin/ivgpu");
  EXPECT_EQ(install.guest_lib, root.path() / "lib/ivgpu/guest");
  EXPECT_EQ(install.sim_lib, root.path() / "lib/ivgpu/simgpu");
  EXPECT_NE(install.cache.string().rfind(root.path().string(), 0), 0U) << install.cache;
}

// Sets or unsets an environment variable during the object's lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* const name_;
  std::optional<std::string> before_;
};

// Takes the folder away from this user: root gives the folder to another user, other users remove their own permission.
void make_anothers(const fs::path& folder) {
  ASSERT_EQ(geteuid() == 0 ? chown(folder.c_str(), 65534, 65534) : chmod(folder.c_str(), 0500), 0);
}

TEST(Install, AnothersBuildTreeIsUsedWithACacheOfOnesOwn) {
  const TempDir root, home;
  const Variable cache("XDG_CACHE_HOME", nullptr), own_home("HOME", home.path().c_str());
  EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, root.path() / "guest-image");
  fs::create_directory(root.path() / "guest-image");
  make_anothers(root.path() / "guest-image");  // as after a command that root ran
  EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, home.path() / ".cache/ivgpu");
  fs::remove(root.path() / "guest-image");
  make_anothers(root.path());
  EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, home.path() / ".cache/ivgpu");
  fs::permissions(root.path(), fs::perms::owner_all);
}

// Not in a folder that another user may have created.
TEST(Install, WithoutAHomeTheCacheIsInTheUsersFolderByTheSystemsList) {
  const TempDir root;
  fs::create_directories(root.path() / "lib/ivgpu");
  const passwd* const user = getpwuid(geteuid());
  if (user == nullptr) GTEST_SKIP() << "this user has no entry in passwd";
  const Variable cache("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
  EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, fs::path(user->pw_dir) / ".cache/ivgpu");
}

TEST(Install, APathThatDependsOnTheCurrentFolderNamesNoCache) {
  const TempDir root, own;
  fs::create_directories(root.path() / "lib/ivgpu");
  {
    const Variable cache("XDG_CACHE_HOME", "cache"), home("HOME", own.path().c_str());
    EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, own.path() / ".cache/ivgpu");
  }
  const Variable cache("XDG_CACHE_HOME", own.path().c_str()), home("HOME", ".");
  EXPECT_EQ(install_at(root.path() / "bin/ivgpu").cache, own.path() / "ivgpu");
}

TEST(Install, AUserWithoutAFolderHasNoCacheAndIsReported) {
  const TempDir root;
  fs::create_directories(root.path() / "lib/ivgpu");
  constexpr uid_t unlisted = 4294967290;
  if (geteuid() == 0 && getpwuid(unlisted) == nullptr) {
    const Variable cache("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
    fs::permissions(root.path(), fs::perms(0755));  // the other user keeps root's group
    ASSERT_EQ(seteuid(unlisted), 0);
    const fs::path found = install_at(root.path() / "bin/ivgpu").cache;
    ASSERT_EQ(seteuid(0), 0);
    EXPECT_EQ(found, "");
  }
  try {
    make_guest_image({}, {});
    FAIL() << "there is no folder for it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, exit_code::missing);
    EXPECT_EQ(error.what(), "user " + std::to_string(geteuid()) +
                                " has no home folder to keep the guest's image in: set XDG_CACHE_HOME to a folder that "
                                "no other user may write to");
  }
}

TEST(Install, RequireNamesWhatIsMissing) {
  try {
    require("/nowhere/ivgpud", "the broker ivgpud");
    FAIL() << "it is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, exit_code::missing);
    EXPECT_STREQ(error.what(), "the broker ivgpud is missing: /nowhere/ivgpud");
  }
}

TEST(Gpu, AutoIsTheSimulatedOneOnlyWhereThereIsNoOther) {
  EXPECT_EQ(resolved_gpu("auto", true), "auto");
  EXPECT_EQ(resolved_gpu("auto", false), "sim");
  EXPECT_EQ(resolved_gpu("sim", true), "sim");
  EXPECT_EQ(resolved_gpu("/lib/libcuda.so.1", false), "/lib/libcuda.so.1");
}

TEST(BrokerConfig, NamesTheFolderTheGpuAndTheVm) {
  EXPECT_EQ(broker_config({.vm = "guest", .gpu = "sim", .region_size = "64MiB"}, "/run/x"),
            "[broker]\ncgroups = \"off\"\nruntime_dir = \"/run/x\"\n\n[gpu]\nlibrary = "
            "\"sim\"\npolicy = \"time-slice\"\n\n[vm.guest]\nregion_size = \"64MiB\"\n");
}

TEST(BrokerConfig, SharingNamesThePolicyWeightsAndTheVmsOfTheLatencyClass) {
  BrokerOptions options{.vm = "m0", .gpu = "sim", .region_size = "64MiB", .more_vms = {"m1"}};
  options.sharing = {.policy = "turns", .latency_vms = {"m1"}, .weights = {{"m0", 4}}};
  const std::string text = broker_config(options, "/run/x");
  EXPECT_EQ(text.substr(text.find("policy")),
            "policy = \"turns\"\n\n[vm.m0]\nregion_size = \"64MiB\"\nweight = 4\n\n[vm.m1]\nregion_size = "
            "\"64MiB\"\nlatency = true\n");
}

TEST(BrokerConfig, ReportsTheTransportAndVsocksNumbersWhereTheyDiffer) {
  BrokerOptions options{.vm = "v", .more_vms = {"w"}, .transport = "pmem"};
  options.vsock = 1000003;
  const std::string text = broker_config(options, "/run/x");
  EXPECT_EQ(text.substr(text.find("[vm.v]")),
            "[vm.v]\nregion_size = \"1GiB\"\ntransport = \"pmem\"\nvsock_cid = 1000003\nvsock_port = 1000003\n"
            "\n[vm.w]\nregion_size = \"1GiB\"\ntransport = \"pmem\"\n");
}

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(RoomyRegion, IsTheLargestPowerOfTwoThatFitsTheMachine) {
  EXPECT_EQ(roomy_region(24 * gib, false), "16384MiB");
  EXPECT_EQ(roomy_region(32 * gib, false), "32768MiB");
  EXPECT_EQ(roomy_region(gib - 1, false), "512MiB");
}

TEST(RoomyRegion, GivesEachSessionNoMoreThanAWindow) {
  EXPECT_EQ(roomy_region(2000 * gib, false), "524288MiB");
  EXPECT_EQ(roomy_region(2000 * gib, true), "65536MiB") << "the extra configuration may have one slot";
  EXPECT_EQ(roomy_region(24 * gib, true), "16384MiB");
}

TEST(RoomyRegion, IsWhatAProgramHereGetsWithoutASizeOfItsOwn) {
  const auto region = [](const std::string& said) {
    return for_a_program_here({.vm = "v", .gpu = "sim", .region_size = said}).region_size;
  };
  EXPECT_EQ(region("64MiB"), "64MiB");
  const auto memory =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(region(""), roomy_region(memory, false));
}

TEST(BrokerConfig, AGpuByPathBecomesAbsoluteAndIsQuoted) {
  const std::string text = broker_config({.vm = "v", .gpu = "a \"b\"\\c"}, "/run/x");
  EXPECT_NE(text.find("library = \"" + fs::current_path().string() + "/a \\\"b\\\"\\\\c\"\n"), std::string::npos)
      << text;
}

TEST(BrokerConfig, ExtraSettingsBelongToTheVm) {
  const TempDir folder;
  std::ofstream(folder.path() / "extra") << "slots = 2\n";
  const std::string text = broker_config({.vm = "v", .extra_config = folder.path() / "extra"}, "/run/x");
  EXPECT_EQ(text.substr(text.find("[vm.v]")), "[vm.v]\nregion_size = \"1GiB\"\nslots = 2\n");
}

TEST(BrokerConfig, VectorsAreTheExtraSettingsOwnWhereTheseHaveThem) {
  const TempDir folder;
  const BrokerOptions options{.vm = "v", .vectors = 64, .extra_config = folder.path() / "extra"};
  const auto vm_of = [&](const char* extra) {
    std::ofstream(options.extra_config) << extra;
    const std::string text = broker_config(options, "/run/x");
    return text.substr(text.find("[vm.v]"));
  };
  EXPECT_EQ(vm_of("slots = 2\n"), "[vm.v]\nregion_size = \"1GiB\"\nvectors = 64\nslots = 2\n");
  EXPECT_EQ(extra_vectors(options), std::nullopt);
  EXPECT_EQ(vm_of("slots = 2\nvectors=3\n"), "[vm.v]\nregion_size = \"1GiB\"\nslots = 2\nvectors=3\n");
  EXPECT_EQ(extra_vectors(options), 3U);
  vm_of("slots = 2\n[vm.other]\nvectors = 3\n");
  EXPECT_EQ(extra_vectors(options), std::nullopt) << "another VM's";
}

}  // namespace
}  // namespace ivgpu
