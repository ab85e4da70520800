// The key `placement` chooses among several GPUs for a VM. The tests use simulated machines, and a real ivgpud, which
// must show, count and keep the choice.
#include "host/broker/alloc/placement.h"

#include "host/broker/worker/worker_program.h"
#include "host/simgpu/image/device_names.h"
#include "tests/error_of.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using host::broker::Config;
using host::broker::Gpu;
using host::broker::GpuAccount;
using host::broker::VmGpus;
using Accounts = std::map<std::string, GpuAccount>;
using Texts = std::vector<std::string>;

std::string gpu(int device) { return simgpu::device_uuid_text(device); }

Config parsed(const std::string& vms, const std::string& gpu_keys = "") {
  return host::broker::parse_config("[gpu]\nlibrary = \"sim\"\n" + gpu_keys + vms, "f", 8).value();
}

// Accounts in which the simulated devices have these sizes in GiB, for as many devices as `sizes` lists.
Accounts with_sizes(const std::vector<unsigned>& sizes) {
  Accounts known;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    GpuAccount& account = known[host::broker::key_of(gpu(static_cast<int>(d)))];
    account.name = gpu(static_cast<int>(d));
    account.total = std::uint64_t{sizes[d]} << 30;
  }
  return known;
}

struct Settled {
  std::vector<VmGpus> gpus;
  std::string error;  // "" on success
};

Settled settle(const Config& config, const char* devices, const Accounts& known,
               const std::map<std::string, VmGpus>& kept = {}) {
  Settled settled;
  setenv("IVGPU_SIM_DEVICES", devices, 1);
  auto gpus = host::broker::find_gpus(config);
  if (gpus) gpus = host::broker::place_gpus(config, known, kept, *std::move(gpus));
  unsetenv("IVGPU_SIM_DEVICES");
  settled.error = error_of(gpus);
  if (gpus) settled.gpus = *std::move(gpus);
  EXPECT_EQ(settled.error.find('\n'), std::string::npos) << settled.error;
  return settled;
}

// The UUIDs of each VM's GPUs, by VM name.
Texts chosen(const Config& config, const char* devices, const Accounts& known,
             const std::map<std::string, VmGpus>& kept = {}) {
  const Settled settled = settle(config, devices, known, kept);
  EXPECT_EQ(settled.error, "");
  Texts all;
  for (const VmGpus& gpus : settled.gpus) {
    all.emplace_back();
    for (const Gpu& one : gpus.list) all.back() += (all.back().empty() ? "" : " ") + one.uuid;
  }
  return all;
}

constexpr const char* spread = "placement = \"least-loaded\"\n";
constexpr const char* dense = "placement = \"packed\"\n";

std::string vm(const std::string& name, const std::string& keys, int gibi = 0) {
  return "[vm." + name + "]\n" + keys + (gibi == 0 ? "" : "gpu_memory = \"" + std::to_string(gibi) + "GiB\"\n");
}

TEST(Placement, FixedIsTheWholeListOfTheKey) {
  const Config config = parsed(vm("a", "") + vm("b", "placement = \"fixed\"\ngpus = [2, 0]\n"));
  EXPECT_EQ(chosen(config, "3", {}), Texts({gpu(0) + " " + gpu(1) + " " + gpu(2), gpu(2) + " " + gpu(0)}));
}

TEST(Placement, TheLeastLoadedHasTheLeastPromised) {
  const Config config =
      parsed(vm("a", "gpus = [0]\n", 3) + vm("b", spread, 2) + vm("c", spread, 1) + vm("d", spread, 1));
  EXPECT_EQ(chosen(config, "3", with_sizes({8, 8, 8})), Texts({gpu(0), gpu(1), gpu(2), gpu(2)}));
}

TEST(Placement, AmongEquallyLoadedTheOneWithTheFewestVms) {
  const Config config = parsed(vm("a", spread) + vm("b", spread) + vm("c", spread) + vm("d", "gpus = [2]\n"));
  EXPECT_EQ(chosen(config, "3", {}), Texts({gpu(0), gpu(1), gpu(0), gpu(2)})) << "d counts, wherever it stands";
}

TEST(Placement, TheLeastLoadedMustHaveRoom) {
  const Config config = parsed(vm("a", "gpus = [1]\n", 1) + vm("b", spread, 3));
  EXPECT_EQ(chosen(config, "2", with_sizes({2, 8})), Texts({gpu(1), gpu(1)})) << "nothing is promised of the small one";
}

TEST(Placement, PackedFillsOneAfterTheOther) {
  const Config config =
      parsed(vm("a", dense, 3) + vm("b", dense, 3) + vm("c", dense, 3) + vm("d", dense, 2) + vm("e", dense, 2));
  EXPECT_EQ(chosen(config, "3", with_sizes({8, 8, 8})), Texts({gpu(0), gpu(0), gpu(1), gpu(0), gpu(1)}));
}

TEST(Placement, PackedIsByTheNumberOfVmsAndNotByMemory) {
  const Config config = parsed(vm("a", "gpus = [0]\n", 6) + vm("b", "gpus = [1]\n", 1) + vm("c", "gpus = [1]\n", 1) +
                               vm("d", dense, 1) + vm("e", dense));
  EXPECT_EQ(chosen(config, "2", with_sizes({8, 8})), Texts({gpu(0), gpu(1), gpu(1), gpu(1), gpu(1)}));
}

TEST(Placement, ChoosesAmongNamedGpus) {
  const Config config =
      parsed(vm("a", std::string(spread) + "gpus = [2, 1]\n") + vm("b", std::string(dense) + "gpus = [0]\n") +
             vm("c", std::string(spread) + "gpus = [2, 1]\n"));
  EXPECT_EQ(chosen(config, "3", {}), Texts({gpu(2), gpu(0), gpu(1)})) << "of equals the first that is named";
  const Settled settled = settle(config, "3", {});
  EXPECT_FALSE(settled.gpus[0].all);
  EXPECT_EQ(settled.gpus[0].placement, "least-loaded");
  EXPECT_EQ(settled.gpus[1].placement, "packed");
}

TEST(Placement, ANamedGpuThatThereIsNotIsReported) {
  const Settled settled = settle(parsed(vm("a", std::string(spread) + "gpus = [0, 7]\n")), "2", {});
  EXPECT_TRUE(settled.error.starts_with("[vm.a] gpus: there is no GPU \"7\"; this host has GPU 0")) << settled.error;
}

TEST(Placement, WithoutRoomItIsOneSentence) {
  const std::string vms = vm("a", "gpus = [0]\n", 3) + vm("b", "gpus = [1]\n", 2) + vm("c", dense, 4);
  const std::string none = "\": no GPU has room for its gpu_memory of 4096 MiB: " + gpu(0) +
                           " has 3072 of 6144 MiB left, " + gpu(1) + " has 1024 of 3072 MiB left";
  EXPECT_EQ(settle(parsed(vms), "2", with_sizes({6, 3})).error, "[vm.c] placement = \"packed" + none);
  std::string other = vms;
  other.replace(other.find("packed"), 6, "least-loaded");
  EXPECT_EQ(settle(parsed(other), "2", with_sizes({6, 3})).error, "[vm.c] placement = \"least-loaded" + none);
  EXPECT_EQ(chosen(parsed(vms, "overcommit = true\n"), "2", with_sizes({6, 3})).back(), gpu(0));
  EXPECT_EQ(chosen(parsed(vms), "2", with_sizes({6})).back(), gpu(1)) << "nobody knows yet how much that one has";
}

TEST(Placement, AVmThatIsServedKeepsItsGpu) {
  const Config before = parsed(vm("b", spread, 1) + vm("c", spread, 1));
  const Settled first = settle(before, "3", with_sizes({8, 8, 8}));
  ASSERT_EQ(first.gpus[1].list.front().uuid, gpu(1));
  // VM b has ended, so its GPU is free. VM c keeps its own GPU nevertheless, and counts on that GPU.
  const Config after = parsed(vm("a", spread, 1) + vm("c", spread, 1) + vm("d", spread, 1) + vm("e", spread, 1));
  EXPECT_EQ(chosen(after, "3", with_sizes({8, 8, 8}), {{"c", first.gpus[1]}}), Texts({gpu(0), gpu(1), gpu(2), gpu(0)}));
}

TEST(Placement, UnderMpsAVmThatChoosesHasOneGpu) {
  EXPECT_EQ(chosen(parsed(vm("a", spread) + vm("b", spread), "policy = \"mps\"\n"), "2", {}), Texts({gpu(0), gpu(1)}));
  EXPECT_NE(settle(parsed(vm("a", "") + vm("b", spread), "policy = \"mps\"\n"), "2", {}).error.find("[vm.a] has 2"),
            std::string::npos);
}

// ---- machines with device files ------------------------------------------------------------------------------------

Gpu real_gpu(unsigned index, const std::string& uuid) {
  return {.index = index,
          .uuid = uuid,
          .pci = "0000:1" + std::to_string(index) + ":00.0",
          .node = "/dev/nvidia" + std::to_string(index)};
}

TEST(Placement, MigDevicesAreCandidatesByUuid) {
  const std::vector<Gpu> host = {real_gpu(0, "GPU-1a2b3c4d-0000-0000-0000-000000000001")};
  const std::string first = "MIG-00000000-0000-0000-0000-000000000001",
                    second = "MIG-00000000-0000-0000-0000-000000000002";
  std::vector<VmGpus> gpus(2);
  for (VmGpus& of_vm : gpus) of_vm.list = host::broker::find_candidates({first, second}, host).value();
  gpus = host::broker::place_gpus(parsed(vm("a", spread) + vm("b", spread)), {}, {}, gpus).value();
  EXPECT_EQ(gpus[0].list.front().uuid, first);
  EXPECT_EQ(gpus[1].list.front().uuid, second);
  EXPECT_EQ(gpus[1].list.size(), 1U);
  EXPECT_TRUE(gpus[0].devices.empty()) << "the kernel does not say which are a MIG device's";
}

TEST(Placement, ItsWorkersOpenTheFilesOfTheOneGpu) {
  const std::vector<Gpu> host = {real_gpu(0, "GPU-1"), real_gpu(1, "GPU-2")};
  std::vector<VmGpus> gpus(2);
  for (VmGpus& of_vm : gpus) of_vm.list = host::broker::find_candidates({}, host).value();
  gpus = host::broker::place_gpus(parsed(vm("a", spread) + vm("b", spread)), {}, {}, gpus).value();
  EXPECT_EQ(gpus[1].devices, Texts({"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia1"}));
}

TEST(Placement, AGpuThatCannotBeGivenIsNoCandidate) {
  std::vector<Gpu> host = {real_gpu(0, ""), real_gpu(1, "GPU-2")};
  const std::vector<Gpu> candidates = host::broker::find_candidates({}, host).value();
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates.front().uuid, "GPU-2");
  host[1].node_missing = true;
  EXPECT_EQ(error_of(host::broker::find_candidates({}, host)),
            "GPU 1 (GPU-2, 0000:11:00.0) has no /dev/nvidia1: run nvidia-modprobe -c 1");
  const std::string none = error_of(host::broker::find_candidates({}, {}));
  EXPECT_TRUE(none.starts_with("this host has no GPU")) << none;
}

// ---- a broker -------------------------------------------------------------------------------------------------------

std::string file_of(const Broker& broker, const std::string& vms) {
  return "[broker]\nruntime_dir = \"" + broker.folder.path() +
         "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER
         "\"\n[gpu]\nlibrary = \"sim\"\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" +
         vms;
}

bool reload_logs(const Broker& broker, const std::string& vms, const std::string& line) {
  broker.folder.write("c.toml", file_of(broker, vms));
  kill(broker.pid, SIGHUP);
  return broker.eventually_logged(line);
}

std::string status_of(const Broker& broker, const std::string& name) {
  const std::string all = run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path(), "--json"}).text;
  const std::size_t at = all.find("\"name\":\"" + name + "\"");
  const std::size_t from = all.rfind("\"gpus\":[", at);
  return at == std::string::npos ? all : all.substr(from, all.find(']', from) - from);
}

TEST(PlacementOfABroker, IsShownAndStays) {
  Broker broker(
      std::string(spread) + "gpu_memory = \"1GiB\"\n[vm.u]\n" + spread + "gpu_memory = \"1GiB\"\n", "",
      [] { setenv("IVGPU_SIM_DEVICES", "3", 1); }, "sim");
  EXPECT_TRUE(broker.eventually_logged("t: its guests see GPU 0 (" + gpu(0)));
  EXPECT_TRUE(broker.eventually_logged(", by placement = \"least-loaded\""));
  EXPECT_NE(status_of(broker, "t").find(gpu(0)), std::string::npos) << status_of(broker, "t");
  EXPECT_NE(status_of(broker, "u").find(gpu(1)), std::string::npos);
  const std::string shown = run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path()}).text;
  EXPECT_NE(shown.find("  GPU 0: host's 1, " + gpu(1)), std::string::npos) << shown;
  EXPECT_NE(shown.find(", by placement least-loaded\n"), std::string::npos) << shown;

  const std::string keys = std::string(spread) + "gpu_memory = \"1GiB\"\n";
  EXPECT_TRUE(reload_logs(broker, "[vm.a]\n" + keys + "[vm.t]\n" + keys + "[vm.u]\n" + keys, "VM a: added"));
  EXPECT_NE(status_of(broker, "a").find(gpu(2)), std::string::npos)
      << "the first in the file, but not the first served";
  EXPECT_NE(status_of(broker, "t").find(gpu(0)), std::string::npos);
  EXPECT_TRUE(reload_logs(broker,
                          "[vm.a]\n" + keys + "[vm.t]\n" + keys + "gpus = [2]\n[vm.u]\nplacement = \"packed\"\n",
                          "VM u: placement needs a restart of ivgpud"));
  EXPECT_TRUE(broker.eventually_logged("VM t: gpus needs a restart of ivgpud"));
  EXPECT_NE(status_of(broker, "t").find(gpu(0)), std::string::npos);
  EXPECT_NE(status_of(broker, "u").find(gpu(1)), std::string::npos);
  EXPECT_TRUE(reload_logs(broker, "[vm.t]\n" + keys + "[vm.b]\n" + dense + "gpu_memory = \"16GiB\"\n",
                          "no GPU has room for its gpu_memory of 16384 MiB"));
  EXPECT_TRUE(broker.logged("; nothing is changed"));
  EXPECT_EQ(broker.terminate(), 0);
}

}  // namespace
