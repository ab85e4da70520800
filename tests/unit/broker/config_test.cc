// The configuration file: each default, key and error message; and the command line.
#include "host/broker/config/config.h"

#include "tests/error_of.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using host::broker::Config;
using host::broker::default_config;
using host::broker::parse_config;

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "f.toml", 8);
  EXPECT_FALSE(config) << text;
  const std::string error = ::error_of(config);
  EXPECT_EQ(error.find('\n'), std::string::npos) << "one sentence: " << error;
  return error;
}

Config good(const std::string& text, unsigned cores = 8) { return parse_config(text, "f.toml", cores).value(); }

TEST(Config, KeysOfBeforeAreReadForOneReleaseMore) {
  const Config config = good("[gpu]\npolicy = \"turns\"\nquantum_us = 5000\nlongest_turn_ms = 20\n[vm.a]\n");
  EXPECT_EQ(config.gpu.policy, "shared");
  ASSERT_EQ(config.remarks.size(), 3U);
  EXPECT_TRUE(
      config.remarks[0].ends_with("[gpu] longest_turn_ms does nothing any more: leases replace turns, and "
                                  "longest_lease_ms bounds them"))
      << config.remarks[0];
}

TEST(Config, RenamedKeysAreReadForOneReleaseMore) {
  const Config config = good(
      "[defaults]\nbell_us = 100\n[vm.a]\nbell_idle_ms = 5\n"
      "[vm.b]\nbell_us = 200\ndoorbell_poll_us = 300\n");
  ASSERT_EQ(config.vms.size(), 2U);
  EXPECT_EQ(config.vms[0].doorbell_poll_us, 100);
  EXPECT_EQ(config.vms[0].doorbell_idle_poll_ms, 5);
  EXPECT_EQ(config.vms[1].doorbell_poll_us, 300) << "the new key holds";
  EXPECT_EQ(config.vms[1].doorbell_idle_poll_ms, 20);
  ASSERT_EQ(config.remarks.size(), 3U);
  EXPECT_TRUE(config.remarks[0].ends_with("[defaults] bell_us is doorbell_poll_us by now (docs/configuration.md)"))
      << config.remarks[0];
  EXPECT_EQ(error_of("[vm.a]\nbell_us = 10"),
            "f.toml: [vm.a] doorbell_poll_us = 10: doorbell_poll_us takes an integer from 50 to 1000000");
  EXPECT_NE(error_of("[broker]\nbell_us = 100\n[vm.a]"), "");
}

TEST(Config, AnEmptyVmHasTheDefaults) {
  const Config config = good("[vm.a]");
  EXPECT_EQ(config.broker.runtime_dir, "/run/ivgpu");
  EXPECT_EQ(config.broker.socket_mode, 0660);
  EXPECT_EQ(config.gpu.library, "auto");
  EXPECT_EQ(config.gpu.policy, "shared");
  EXPECT_EQ(config.gpu.longest_lease_ms, 1000);
  ASSERT_EQ(config.vms.size(), 1U);
  const auto& vm = config.vms[0];
  EXPECT_EQ(vm.name, "a");
  EXPECT_EQ(vm.region_size, 1 << 30);
  EXPECT_EQ(vm.slots, 8);
  EXPECT_EQ(vm.spare, 1);
  EXPECT_EQ(vm.spin_threads, 4);
  EXPECT_EQ(vm.jail, "best-effort");
  EXPECT_EQ(vm.jail_ioctls, "listed");
  EXPECT_EQ(vm.worker_uid, 65534);
  EXPECT_FALSE(vm.huge_pages);
  EXPECT_EQ(vm.weight, 1);
  EXPECT_FALSE(vm.latency);
  EXPECT_EQ(vm.chaos_delay_us, 0);
  EXPECT_EQ(vm.session_image_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(vm.session_objects, 262144);
  EXPECT_EQ(vm.memory_max, std::int64_t{25} << 30) << "the region, and for 8 slots their images and 1 GiB";
  EXPECT_EQ(vm.pids_max, 4096);
  EXPECT_EQ(vm.cpu_max, 0);
  EXPECT_EQ(config.broker.cgroups, "best-effort");
}

TEST(Config, AVmsSocketIsTheBrokersUnlessConfiguredOtherwise) {
  const Config config = good(
      "[broker]\nsocket_mode = \"0640\"\nsocket_owner = \"o\"\nsocket_group = \"g\"\n"
      "[vm.a]\n[vm.b]\nsocket_mode = \"0600\"\nsocket_group = \"h\"\n[vm.c]\nsocket_mode = \"0000\"\nsocket_owner = "
      "\"p\"");
  EXPECT_EQ(config.vms[0].socket_mode, 0640);
  EXPECT_EQ(config.vms[0].socket_owner + config.vms[0].socket_group, "og");
  EXPECT_EQ(config.vms[1].socket_mode, 0600);
  EXPECT_EQ(config.vms[1].socket_owner + config.vms[1].socket_group, "oh");
  EXPECT_EQ(config.vms[2].socket_mode, 0);
  EXPECT_EQ(config.vms[2].socket_owner + config.vms[2].socket_group, "pg");
  EXPECT_EQ(good("[defaults]\nsocket_mode = \"0606\"\n[vm.a]").vms[0].socket_mode, 0606);
  EXPECT_EQ(config.broker.trace_mode, 0600) << "stricter than the others";
  EXPECT_EQ(config.broker.trace_owner + config.broker.trace_group, "");
}

TEST(Config, TheNthVmOfTheFileGetsTheNthUser) {
  const std::string range = "[broker]\nworker_uids = \"70000-70002\"\n";
  Config config = good(range + "[vm.c]\n[vm.a]\n[vm.b]");
  const auto users = [&config] {
    std::string all;
    for (const auto& vm : config.vms)
      all += vm.name + " " + std::to_string(vm.worker_uid) + ":" + std::to_string(vm.worker_gid) + " ";
    return all;
  };
  EXPECT_EQ(users(), "a 70001:70001 b 70002:70002 c 70000:70000 ");
  for (const auto& vm : config.vms) EXPECT_TRUE(vm.own_uid) << vm.name;
  config = good(range + "[vm.d]\nworker_uid = 7\n[vm.a]\n[vm.b]\nworker_gid = 44\n[vm.c]");
  EXPECT_EQ(users(), "a 70000:70000 b 70001:44 c 70002:70002 d 7:65534 ");
  config = good(range + "[defaults]\nworker_gid = 44\n[vm.a]\n[vm.b]");
  EXPECT_EQ(users(), "a 70000:44 b 70001:44 ");
  config = good("[vm.a]\n[vm.b]");
  EXPECT_EQ(users(), "a 65534:65534 b 65534:65534 ");
  for (const auto& vm : config.vms) EXPECT_FALSE(vm.own_uid) << vm.name;
}

TEST(Config, NobodySpinsOnASmallMachineUnlessAsked) {
  EXPECT_EQ(good("[vm.a]", 2).vms[0].spin_threads, 0);
  EXPECT_EQ(good("[vm.a]", 3).vms[0].spin_threads, 2);
  EXPECT_EQ(good("[vm.a]\nspin_threads = 1", 2).vms[0].spin_threads, 1);
}

TEST(Config, AVmOverridesTheDefaultsOfAll) {
  const Config config = good("[defaults]\nslots = 4\nspare = 2\n[vm.a]\nslots = 5\n[vm.b]\nhuge_pages = true\n");
  ASSERT_EQ(config.vms.size(), 2U);
  EXPECT_EQ(config.vms[0].slots, 5);
  EXPECT_EQ(config.vms[0].spare, 2);
  EXPECT_EQ(config.vms[1].slots, 4);
  EXPECT_TRUE(config.vms[1].huge_pages);
}

TEST(Config, WhatIsPrintedParsesToTheDefaults) {
  const Config printed = good(default_config(8)), plain = good("[vm.example]");
  EXPECT_EQ(printed.vms[0].region_size, plain.vms[0].region_size);
  EXPECT_EQ(printed.vms[0].spin_threads, plain.vms[0].spin_threads);
  EXPECT_EQ(printed.broker.runtime_dir, plain.broker.runtime_dir);
  const Outcome outcome = run_ivgpud({"--print-config"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.text.find("region_size = \"1GiB\""), std::string::npos);
}

TEST(Config, InterruptsOfAVm) {
  const auto vectors = [](const std::string& keys) { return guest_vectors(good("[vm.a]\n" + keys).vms[0]); };
  EXPECT_EQ(vectors(""), 1U);
  EXPECT_EQ(vectors("slots = 5\nvectors = 4"), 4U);
  EXPECT_EQ(vectors("slots = 5\nvectors = 8"), 5U) << "one for each slot";
  EXPECT_EQ(vectors("transport = \"plain\"\nvectors = 8"), 0U);
}

TEST(Config, BoundsOfAVm) {
  const auto vm = [](const std::string& keys) { return good("[vm.a]\n" + keys).vms[0]; };
  EXPECT_EQ(vm("memory_max = \"6GiB\"").memory_max, std::int64_t{6} << 30);
  EXPECT_EQ(vm("memory_max = \"1088MiB\"").memory_max, std::int64_t{1088} << 20);
  EXPECT_EQ(vm("memory_max = \"none\"").memory_max, 0);
  EXPECT_EQ(vm("slots = 2\nsession_image_bytes = \"1GiB\"").memory_max, std::int64_t{5} << 30);
  EXPECT_EQ(vm("cpu_max = \"4\"").cpu_max, 4000);
  EXPECT_EQ(vm("cpu_max = \"2.5\"").cpu_max, 2500);
  EXPECT_EQ(vm("cpu_max = \"0.125\"").cpu_max, 125);
  EXPECT_EQ(vm("cpu_max = \"none\"").cpu_max, 0);
}

// The kernel counts threads per user, so the limit needs a user that no other VM has.
TEST(Config, AUserOfAVmsOwn) {
  const Config config = good("[vm.a]\n[vm.b]\nworker_uid = 7001\n[vm.c]\nworker_uid = 7002\n[vm.d]\nworker_uid = 7002");
  EXPECT_FALSE(config.vms[0].own_uid) << "nobody may be anybody";
  EXPECT_TRUE(config.vms[1].own_uid);
  EXPECT_FALSE(config.vms[2].own_uid);
  EXPECT_FALSE(config.vms[3].own_uid);
  EXPECT_FALSE(good("[vm.a]").vms[0].own_uid);
}

struct Mistake {
  const char* name;
  const char* text;
  const char* sentence;
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, GetOneSentence) { EXPECT_EQ(error_of(GetParam().text), GetParam().sentence); }

constexpr Mistake mistakes[] = {
    {"NoVm", "[broker]\n", "f.toml: there is no VM; add a table [vm.NAME], which may be empty"},
    {"UnknownTable", "[brokers]\n",
     "f.toml: [brokers] is not known; the tables are [broker], [gpu], [defaults] and [vm.NAME]"},
    {"NotATable", "gpu = 1\n", "f.toml: 'gpu' must be a table, as in [gpu]"},
    {"VmNotATable", "[vm]\na = 1\n", "f.toml: [vm] a must be a table, as in [vm.a]"},
    {"UnknownKey", "[gpu]\nlib = 1\n[vm.a]",
     "f.toml: [gpu] has no key 'lib'; it takes library, policy, mps_control, longest_lease_ms, overcommit"},
    {"MetricsForAnybody", "[broker]\nmetrics = \"0.0.0.0:9910\"\n[vm.a]",
     "f.toml: [broker] metrics = \"0.0.0.0:9910\": metrics takes \"\" for none, the path of a socket, beginning with "
     "/, "
     "or an address of the loopback, as \"127.0.0.1:9910\" or \"[::1]:9910\""},
    {"MetricsWithoutAPort", "[broker]\nmetrics = \"127.0.0.1\"\n[vm.a]",
     "f.toml: [broker] metrics = \"127.0.0.1\": metrics takes \"\" for none, the path of a socket, beginning with /, "
     "or an address of the loopback, as \"127.0.0.1:9910\" or \"[::1]:9910\""},
    {"MetricsAPort", "[broker]\nmetrics = 9910\n[vm.a]",
     "f.toml: [broker] metrics = 9910: metrics takes \"\" for none, the path of a socket, beginning with /, "
     "or an address of the loopback, as \"127.0.0.1:9910\" or \"[::1]:9910\""},
    {"ThreadsWithoutMps", "[gpu]\npolicy = \"shared\"\n[vm.a]\nactive_threads = 50",
     "f.toml: [vm.a] active_threads = 50 goes with policy = \"mps\" in [gpu], which says \"shared\""},
    {"ThreadsWithoutMpsForAll", "[defaults]\nactive_threads = 99\n[vm.a]",
     "f.toml: [vm.a] active_threads = 99 goes with policy = \"mps\" in [gpu], which says \"shared\""},
    {"NoThreads", "[gpu]\npolicy = \"mps\"\n[vm.a]\nactive_threads = 0",
     "f.toml: [vm.a] active_threads = 0: active_threads takes an integer from 1 to 100"},
    {"TooManyThreads", "[gpu]\npolicy = \"mps\"\n[vm.a]\nactive_threads = 101",
     "f.toml: [vm.a] active_threads = 101: active_threads takes an integer from 1 to 100"},
    {"UnknownPlacement", "[vm.a]\nplacement = \"spread\"",
     "f.toml: [vm.a] placement = \"spread\": placement takes \"fixed\", \"least-loaded\" or \"packed\""},
    {"UnknownPolicy", "[gpu]\npolicy = \"MPS\"\n[vm.a]",
     "f.toml: [gpu] policy = \"MPS\": policy takes \"shared\", \"time-slice\" or \"mps\""},
    {"MpsControlByName", "[gpu]\nmps_control = \"nvidia-cuda-mps-control\"\n[vm.a]",
     "f.toml: [gpu] mps_control = \"nvidia-cuda-mps-control\": mps_control takes the path of nvidia-cuda-mps-control, "
     "beginning with /, or \"\" for the one in PATH"},
    {"TooManySlots", "[vm.a]\nslots = 65", "f.toml: [vm.a] slots = 65: slots takes an integer from 1 to 64"},
    {"NoSlots", "[vm.a]\nslots = 0", "f.toml: [vm.a] slots = 0: slots takes an integer from 1 to 64"},
    {"TooManyVectors", "[vm.a]\nvectors = 65", "f.toml: [vm.a] vectors = 65: vectors takes an integer from 1 to 64"},
    {"NoVectors", "[vm.a]\nvectors = 0", "f.toml: [vm.a] vectors = 0: vectors takes an integer from 1 to 64"},
    {"NotAnInteger", "[vm.a]\nslots = 1.5", "f.toml: [vm.a] slots = 1.5: slots takes an integer from 1 to 64"},
    {"TextForInteger", "[vm.a]\nspare = \"1\"", "f.toml: [vm.a] spare = \"1\": spare takes an integer from 0 to 64"},
    {"NotAPowerOfTwo", "[vm.a]\nregion_size = \"48MiB\"",
     "f.toml: [vm.a] region_size = \"48MiB\": region_size takes a power of two from \"32MiB\" to \"1TiB\""},
    {"TooLarge", "[vm.a]\nregion_size = \"2TiB\"",
     "f.toml: [vm.a] region_size = \"2TiB\": region_size takes a power of two from \"32MiB\" to \"1TiB\""},
    {"Overflow", "[vm.a]\nregion_size = \"17592186044416TiB\"",
     "f.toml: [vm.a] region_size = \"17592186044416TiB\": region_size takes a power of two from \"32MiB\" to \"1TiB\""},
    {"NoUnit", "[vm.a]\nregion_size = \"1024\"",
     "f.toml: [vm.a] region_size = \"1024\": region_size takes a power of two from \"32MiB\" to \"1TiB\""},
    {"RegionTooSmall", "[vm.a]\nregion_size = \"32MiB\"",
     "f.toml: [vm.a] region_size of 32 MiB is too small for 8 slots, which need 210 MiB at least"},
    {"RegionTooSmallForAll", "[vm.a]\nregion_size = \"1GiB\"\nslots = 64",
     "f.toml: [vm.a] region_size of 1024 MiB is too small for 64 slots, which need 1666 MiB at least"},
    {"BadChoice", "[defaults]\njail = \"on\"\n[vm.a]",
     "f.toml: [defaults] jail = \"on\": jail takes \"best-effort\", \"required\" or \"off\""},
    {"BadIoctls", "[defaults]\njail_ioctls = \"none\"\n[vm.a]",
     "f.toml: [defaults] jail_ioctls = \"none\": jail_ioctls takes \"listed\" or \"any\""},
    {"ChoicesInOne", "[defaults]\njail = 'required\" or \"off'\n[vm.a]",
     "f.toml: [defaults] jail = \"required\" or \"off\": jail takes \"best-effort\", \"required\" or \"off\""},
    {"TwoLines", "[gpu]\n\"a\\nb\" = 1\n[vm.a]",
     "f.toml: [gpu] has no key 'a b'; it takes library, policy, mps_control, longest_lease_ms, overcommit"},
    {"LetterAlone", "[vm.a]\n\xc3\xbdv", "f.toml:2: a letter beyond ASCII may stand on a line of comment only"},
    {"LetterEscaped", "a = \"\\\xc3\xbd\"", "f.toml:1: a letter beyond ASCII may stand on a line of comment only"},
    {"LetterInAStringOfLines", "a = \"\"\"\n# \"\"\"\xef\xbb\xa2\" = 1",
     "f.toml:1: a string of several lines is taken by no key"},
    {"LiteralOfLines", "[vm.a]\n  a = '''\n'''", "f.toml:2: a string of several lines is taken by no key"},
    {"BadMode", "[broker]\nsocket_mode = \"0999\"\n[vm.a]",
     "f.toml: [broker] socket_mode = \"0999\": socket_mode takes permissions in octal, as \"0660\""},
    {"BadPath", "[gpu]\nlibrary = \"libcuda.so.1\"\n[vm.a]",
     "f.toml: [gpu] library = \"libcuda.so.1\": library takes \"auto\", \"sim\" or the path of a libcuda.so.1, "
     "beginning "
     "with /"},
    {"BadBoolean", "[vm.a]\nhuge_pages = 1", "f.toml: [vm.a] huge_pages = 1: huge_pages takes true or false"},
    {"TableForValue", "[vm.a.slots]\nx = 1", "f.toml: [vm.a] slots = a table: slots takes an integer from 1 to 64"},
    {"RootAsWorker", "[vm.a]\nworker_uid = 0",
     "f.toml: [vm.a] worker_uid = 0: worker_uid takes an integer from 1 to 4294967294"},
    {"FileWithoutPlain", "[vm.a]\nplain_file = \"/dev/shm/a\"",
     "f.toml: [vm.a] plain_file goes with transport = \"plain\" or \"pmem\""},
    {"OneFileForTwo", "[defaults]\ntransport = \"plain\"\nplain_file = \"/dev/shm/a\"\n[vm.a]\n[vm.b]",
     "f.toml: [vm.b] plain_file = \"/dev/shm/a\" is that of [vm.a]"},
    {"FileWithHugePages", "[vm.a]\ntransport = \"plain\"\nplain_file = \"/dev/shm/a\"\nhuge_pages = true",
     "f.toml: [vm.a] huge_pages is for a memfd: a plain_file has huge pages where it lies on hugetlbfs"},
    {"RelativeFile", "[vm.a]\nplain_file = \"a\"",
     "f.toml: [vm.a] plain_file = \"a\": plain_file takes the path of a file in /dev/shm or on hugetlbfs, beginning "
     "with /, or \"\" for a memfd"},
    {"BadTransport", "[vm.a]\ntransport = \"vsock\"",
     "f.toml: [vm.a] transport = \"vsock\": transport takes \"doorbell\", \"plain\" or \"pmem\""},
    {"CidWithoutPmem", "[vm.a]\nvsock_cid = 3\nvsock_port = 5000",
     "f.toml: [vm.a] vsock_cid and vsock_port go with transport = \"pmem\""},
    {"CidWithoutPort", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = 3",
     "f.toml: [vm.a] vsock_cid and vsock_port go together: QEMU's guest-cid, and a port that is this VM's alone"},
    {"PortWithoutCid", "[vm.a]\ntransport = \"pmem\"\nvsock_port = 5000",
     "f.toml: [vm.a] vsock_cid and vsock_port go together: QEMU's guest-cid, and a port that is this VM's alone"},
    {"CidOfTheHost", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = 2\nvsock_port = 5000",
     "f.toml: [vm.a] vsock_cid = 2 is the CID of every host: give the VM another, 3 or more, in QEMU's guest-cid, too"},
    {"CidOfAnybody", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = 4294967295\nvsock_port = 5000",
     "f.toml: [vm.a] vsock_cid = 4294967295: vsock_cid takes an integer from 3 to 4294967294, 1 for this machine's own "
     "programs, or 0 for none"},
    {"NegativeCid", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = -1\nvsock_port = 5000",
     "f.toml: [vm.a] vsock_cid = -1: vsock_cid takes an integer from 3 to 4294967294, 1 for this machine's own "
     "programs, or 0 for none"},
    {"ReservedPort", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = 3\nvsock_port = 1023",
     "f.toml: [vm.a] vsock_port = 1023 is reserved: take 1024 or more"},
    {"PortOfAnybody", "[vm.a]\ntransport = \"pmem\"\nvsock_cid = 3\nvsock_port = 4294967295",
     "f.toml: [vm.a] vsock_port = 4294967295: vsock_port takes an integer from 1024 to 4294967294, or 0 for none"},
    {"OneCidForTwo",
     "[defaults]\ntransport = \"pmem\"\nvsock_cid = 3\n[vm.a]\nvsock_port = 5000\n[vm.b]\nvsock_port = 5001",
     "f.toml: [vm.b] vsock_cid = 3 is that of [vm.a]: each VM has its own"},
    {"OnePortForTwo",
     "[defaults]\ntransport = \"pmem\"\nvsock_port = 5000\n[vm.a]\nvsock_cid = 3\n[vm.b]\nvsock_cid = 4",
     "f.toml: [vm.b] vsock_port = 5000 is that of [vm.a]: each VM has its own"},
    {"NoWeight", "[vm.a]\nweight = 0", "f.toml: [vm.a] weight = 0: weight takes an integer from 1 to 1000"},
    {"WeightTooLarge", "[vm.a]\nweight = 1001", "f.toml: [vm.a] weight = 1001: weight takes an integer from 1 to 1000"},
    {"NegativeWeight", "[defaults]\nweight = -1\n[vm.a]",
     "f.toml: [defaults] weight = -1: weight takes an integer from 1 to 1000"},
    {"WeightInParts", "[vm.a]\nweight = 1.5", "f.toml: [vm.a] weight = 1.5: weight takes an integer from 1 to 1000"},
    {"LongestLeaseTooShort", "[gpu]\nlongest_lease_ms = 99\n[vm.a]",
     "f.toml: [gpu] longest_lease_ms = 99: longest_lease_ms takes an integer from 100 to 60000"},
    {"ReserveOfEverything", "[vm.a]\nreserve = 91",
     "f.toml: [vm.a] reserve = 91: reserve takes an integer from 0 to 90"},
    {"DoorbellPolledTooOften", "[vm.a]\ndoorbell_poll_us = 10",
     "f.toml: [vm.a] doorbell_poll_us = 10: doorbell_poll_us takes an integer from 50 to 1000000"},
    {"BadVmMode", "[vm.a]\nsocket_mode = \"-1\"",
     "f.toml: [vm.a] socket_mode = \"-1\": socket_mode takes permissions in octal, as \"0660\", or \"\" for those in "
     "[broker]"},
    {"NoTraceMode", "[broker]\ntrace_mode = \"\"\n[vm.a]",
     "f.toml: [broker] trace_mode = \"\": trace_mode takes permissions in octal, as \"0600\""},
    {"RangeOfOne", "[broker]\nworker_uids = \"70000\"\n[vm.a]",
     "f.toml: [broker] worker_uids = \"70000\": worker_uids takes a range of numbers of users, as \"200000-200063\", "
     "or "
     "\"\" for none"},
    {"RangeWithRoot", "[broker]\nworker_uids = \"0-9\"\n[vm.a]",
     "f.toml: [broker] worker_uids = \"0-9\": worker_uids takes a range of numbers of users, as \"200000-200063\", or "
     "\"\" for none"},
    {"RangeBackwards", "[broker]\nworker_uids = \"9-8\"\n[vm.a]",
     "f.toml: [broker] worker_uids = \"9-8\": worker_uids takes a range of numbers of users, as \"200000-200063\", or "
     "\"\" for none"},
    {"RangeTooLarge", "[broker]\nworker_uids = \"1-4294967295\"\n[vm.a]",
     "f.toml: [broker] worker_uids = \"1-4294967295\": worker_uids takes a range of numbers of users, as "
     "\"200000-200063\", or \"\" for none"},
    {"RangeTooSmall", "[broker]\nworker_uids = \"70000-70001\"\n[vm.a]\n[vm.b]\n[vm.c]",
     "f.toml: [broker] worker_uids = \"70000-70001\" has 2 user(s), and 3 VMs are to have one each"},
    {"UserOfTheRange", "[broker]\nworker_uids = \"70000-70009\"\n[vm.a]\n[vm.b]\nworker_uid = 70009",
     "f.toml: [vm.b] worker_uid = 70009 is one of [broker] worker_uids = \"70000-70009\", which ivgpud gives to VMs by "
     "itself"},
    {"GroupOfTheRange", "[broker]\nworker_uids = \"70000-70009\"\n[vm.a]\nworker_gid = 70000",
     "f.toml: [vm.a] worker_gid = 70000 is one of [broker] worker_uids = \"70000-70009\", which ivgpud gives to VMs by "
     "itself"},
    {"OneUserAndARange", "[broker]\nworker_uids = \"70000-70009\"\n[defaults]\nworker_uid = 7\n[vm.a]",
     "f.toml: [defaults] worker_uid is one user for all VMs; leave it out, or [broker] worker_uids"},
    {"LittleMemory", "[vm.a]\nmemory_max = \"1GiB\"",
     "f.toml: [vm.a] memory_max of 1024 MiB is too small for a region_size of 1024 MiB: 1088 MiB at least"},
    {"MemoryWithoutUnit", "[vm.a]\nmemory_max = \"2000000000\"",
     "f.toml: [vm.a] memory_max = \"2000000000\": memory_max takes a size such as \"6GiB\", \"auto\" or \"none\""},
    {"CpuAuto", "[vm.a]\ncpu_max = \"auto\"",
     "f.toml: [vm.a] cpu_max = \"auto\": cpu_max takes a number of processors such as \"4\" or \"2.5\", or \"none\""},
    {"NoCpu", "[vm.a]\ncpu_max = \"0\"",
     "f.toml: [vm.a] cpu_max = \"0\": cpu_max takes a number of processors such as \"4\" or \"2.5\", or \"none\""},
    {"LessThanNoCpu", "[vm.a]\ncpu_max = \"-1.5\"",
     "f.toml: [vm.a] cpu_max = \"-1.5\": cpu_max takes a number of processors such as \"4\" or \"2.5\", or \"none\""},
    {"CpuTooExact", "[vm.a]\ncpu_max = \"1.2345\"",
     "f.toml: [vm.a] cpu_max = \"1.2345\": cpu_max takes a number of processors such as \"4\" or \"2.5\", or \"none\""},
    {"CpuPoint", "[vm.a]\ncpu_max = \"1.\"",
     "f.toml: [vm.a] cpu_max = \"1.\": cpu_max takes a number of processors such as \"4\" or \"2.5\", or \"none\""},
    {"TooManyPids", "[vm.a]\npids_max = 5000000",
     "f.toml: [vm.a] pids_max = 5000000: pids_max takes an integer from 0 to 4194304; 0: no bound"},
    {"NoObjects", "[vm.a]\nsession_objects = 0",
     "f.toml: [vm.a] session_objects = 0: session_objects takes an integer from 64 to 1048575"},
    {"FewImageBytes", "[vm.a]\nsession_image_bytes = \"512KiB\"",
     "f.toml: [vm.a] session_image_bytes = \"512KiB\": session_image_bytes takes a power of two from \"1MiB\" to "
     "\"1TiB\""},
    {"BadName", "[vm.\"a/b\"]",
     "f.toml: [vm.a/b]: a VM's name has 1 to 63 letters, digits, '-', '_' and '.', and begins with a letter or digit"},
};
INSTANTIATE_TEST_SUITE_P(Config, Mistakes, ::testing::ValuesIn(mistakes),
                         [](const auto& test) { return test.param.name; });

TEST(Config, LettersBeyondAsciiStandOnLinesOfComment) {
  EXPECT_EQ(good("# \xc3\xbd\n  # \xc3\xbd \xff\n[vm.a]").vms.size(), 1U);
  EXPECT_EQ(good("# '''\xc3\xbd\n[vm.a]\n# \xe2\x80\xa9 '''").vms.size(), 1U);
}

// toml++ itself would accept these texts, and produce values that TOML does not define.
TEST(Config, WhatSurprisesTomlPlusPlusDoesNotReachIt) {
  const std::string many(64, '_');
  EXPECT_EQ(error_of("[vm.a]\nslots = 2000-01-01" + many + " 1"), "f.toml:2: a word may have 63 underscores at most");
  EXPECT_EQ(error_of("[vm.a]\nslots = 20\"0-01-01" + many + " 1"), "f.toml:2: a word may have 63 underscores at most");
  std::string deep = "[vm";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(error_of(deep + "]"), "f.toml:1: a line may have 100 dots at most");
  std::string nested = "a = ";
  for (int i = 0; i < 100; ++i) nested += "[\n{ b = ";
  EXPECT_NE(error_of(nested).find("maximum nested value depth"), std::string::npos) << error_of(nested);
  EXPECT_EQ(error_of("a = [}]"), "f.toml: this is no TOML");
}

// The longest VM name, and a path of many words.
TEST(Config, WhatIsKeptFromTomlPlusPlusIsMoreThanAnybodyNeeds) {
  const std::string name = "a" + std::string(62, '_'), path = "/a_b.c_d/" + std::string(60, '_') + "/..";
  const Config config = good("[gpu]\nlibrary = \"" + path + "\"\n[vm." + name + "] # '");
  EXPECT_EQ(config.vms[0].name, name);
  EXPECT_EQ(config.gpu.library, path);
}

TEST(Config, ASyntaxErrorNamesItsPlace) {
  EXPECT_EQ(error_of("[vm.a]\nslots = = 3").rfind("f.toml:2:9: ", 0), 0U) << error_of("[vm.a]\nslots = = 3");
}

TEST(CommandLine, ABadConfigurationIsReportedAndExitsWithTwo) {
  Folder folder;
  const std::string file = folder.write("bad.toml", "[vm.a]\nslots = 65\n");
  const Outcome outcome = run_ivgpud({"--config", file});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text, "ivgpud: " + file + ": [vm.a] slots = 65: slots takes an integer from 1 to 64\n");
}

TEST(CommandLine, CheckReportsGoodAndServesNothing) {
  Folder folder;
  folder.write("libcuda.so.1", "");
  const std::string file = folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                                      "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                                      (folder / "libcuda.so.1") + "\"\n[vm.a]\n");
  const Outcome outcome = run_ivgpud({"--check", "--config", file});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("good: 1 VM(s)"), std::string::npos) << outcome.text;
}

TEST(CommandLine, WhatIsMissingIsNamed) {
  Folder folder;
  const auto said = [&](const std::string& text, const char* sentence) {
    const Outcome outcome = run_ivgpud({"--config", folder.write("c.toml", text)});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.text.find(sentence), std::string::npos) << outcome.text;
  };
  said("[broker]\nworker = \"/nowhere\"\n[vm.a]", "[broker] worker: /nowhere: No such file or directory");
  said("[broker]\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"/nowhere\"\n[vm.a]",
       "[gpu] library = \"/nowhere\": there is no such file");
  EXPECT_EQ(run_ivgpud({"--config", folder / "none.toml"}).code, 2);
  EXPECT_EQ(run_ivgpud({}).code, 2);
  EXPECT_EQ(run_ivgpud({"--no-such-option"}).code, 2);
}

TEST(CommandLine, VersionAndHelp) {
  EXPECT_EQ(run_ivgpud({"--version"}).code, 0);
  EXPECT_EQ(run_ivgpud({"--version"}).text.rfind("ivgpud ", 0), 0U);
  EXPECT_NE(run_ivgpud({"--help"}).text.find("--stay-while-fd"), std::string::npos);
}

}  // namespace
