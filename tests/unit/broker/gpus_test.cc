// The key `gpus`: the kernel's information about GPUs, the meaning of the key's elements, and each error message.
#include "host/broker/gpu/gpus.h"

#include "host/broker/alloc/gpu_holds.h"
#include "host/broker/config/config.h"
#include "tests/child.h"
#include "tests/error_of.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using host::broker::choose_gpus;
using host::broker::Gpu;
using host::broker::GpuHolds;
using host::broker::gpus_of_machine;
using host::broker::parse_gpu;
using host::broker::show_only;
using host::broker::simulated_gpus;
using host::broker::VmGpus;
using Texts = std::vector<std::string>;

std::string information(const std::string& uuid, const std::string& pci, const std::string& minor) {
  return "Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\nGPU UUID: \t " + uuid + "\nVideo BIOS: \t 96.00\nBus Location: \t " +
         pci + "\nDevice Minor: \t " + minor + "\nGPU Firmware: \t 580.159.04\nGPU Excluded:\t No\n";
}

constexpr const char* first = "GPU-1a2b3c4d-0000-0000-0000-000000000001";
constexpr const char* second = "GPU-1a2bffff-0000-0000-0000-000000000002";
// The kernel shows this UUID for a GPU that has been unused since boot. `\?` avoids trigraphs.
constexpr const char* unread = "GPU-?\?\?\?\?\?\?\?-?\?\?\?-?\?\?\?-?\?\?\?-?\?\?\?\?\?\?\?\?\?\?\?";
constexpr const char* third = "GPU-99999999-0000-0000-0000-000000000003";

// Three GPUs whose addresses, minors and directory entries are in different orders.
class Machine {
 public:
  Machine() {
    put("0000:81:00.0", information(third, "0000:81:00.0", "0"));
    put("0000:19:00.0", information(first, "0000:19:00.0", "2"));
    put("0000:3b:00.0", information(second, "0000:3b:00.0", "1"));
    std::filesystem::create_directories(folder / "dev");
    for (const char* node : {"dev/nvidia0", "dev/nvidia1", "dev/nvidia2"}) folder.write(node, "");
  }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder / ("proc/driver/nvidia/gpus/" + name));
    folder.write("proc/driver/nvidia/gpus/" + name + "/information", text);
  }
  std::vector<Gpu> gpus() const { return gpus_of_machine(folder.path()); }

  Folder folder;
};

VmGpus chosen(const Texts& wanted, const std::vector<Gpu>& host) { return choose_gpus(wanted, host).value(); }

std::string error_of(const Texts& wanted, const std::vector<Gpu>& host) {
  const std::string error = ::error_of(choose_gpus(wanted, host));
  EXPECT_NE(error, "");
  EXPECT_EQ(error.find('\n'), std::string::npos) << "one sentence: " << error;
  return error;
}

Texts uuids(const VmGpus& gpus) {
  Texts all;
  for (const Gpu& gpu : gpus.list) all.push_back(gpu.uuid);
  return all;
}

TEST(Gpus, AreReadFromTheKernelsText) {
  const auto gpu = parse_gpu(information(first, "0000:19:00.0", "2"));
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->uuid, first);
  EXPECT_EQ(gpu->pci, "0000:19:00.0");
  EXPECT_EQ(gpu->node, "/dev/nvidia2");
}

TEST(Gpus, TextThatIsNotOfAGpuIsNone) {
  for (const std::string& text :
       {std::string(), std::string("Bus Location: \t 0000:19:00.0"), std::string("Device Minor: 1\n"),
        information(first, "nowhere", "2"), information(first, "0000:19", "2x"), information(first, "0000:19:00.0", ""),
        information(first, "0000:19:00.0", "-1"), information(first, "0000:19:00.0", "4294967296"),
        information(first, "0:1:2:3", "1"), information(first, "00zz:19:00.0", "1"), std::string(100'000, ':')})
    EXPECT_FALSE(parse_gpu(text)) << text.substr(0, 200);
  std::string excluded = information(first, "0000:19:00.0", "2");
  excluded.replace(excluded.find("\t No"), 4, "\t Yes");
  EXPECT_FALSE(parse_gpu(excluded));
}

TEST(Gpus, AUuidOfQuestionMarksIsNotKnown) {
  const auto gpu = parse_gpu(information(unread, "0000:19:00.0", "0"));
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->uuid, "");
  EXPECT_EQ(parse_gpu(information("N/A", "0000:19:00.0", "0"))->uuid, "");
}

TEST(Gpus, CountInTheOrderOfPciAddresses) {
  const Machine machine;
  const auto gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].uuid, first);
  EXPECT_EQ(gpus[1].uuid, second);
  EXPECT_EQ(gpus[2].uuid, third);
  EXPECT_EQ(gpus[2].index, 2U);
  EXPECT_EQ(gpus[2].node, "/dev/nvidia0");
  EXPECT_FALSE(gpus[2].node_missing);
}

TEST(Gpus, AMachineWithoutTheDriverHasNone) {
  const Folder empty;
  EXPECT_TRUE(gpus_of_machine(empty.path()).empty());
}

TEST(Gpus, AllIsWhateverThereIs) {
  const Machine machine;
  const VmGpus gpus = chosen({}, machine.gpus());
  EXPECT_TRUE(gpus.all);
  EXPECT_EQ(gpus.list.size(), 3U);
  EXPECT_TRUE(gpus.devices.empty());
  Texts environment = {"A=b", "CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=FASTEST_FIRST"};
  const Texts before = environment;
  show_only(gpus, environment);
  EXPECT_EQ(environment, before);
}

TEST(Gpus, AreNamedByIndexUuidAndAddress) {
  const Machine machine;
  const auto host = machine.gpus();
  EXPECT_EQ(uuids(chosen({"2", "0"}, host)), Texts({third, first}));
  EXPECT_EQ(uuids(chosen({second}, host)), Texts({second}));
  EXPECT_EQ(uuids(chosen({"GPU-1a2b3", "GPU-9"}, host)), Texts({first, third}));
  for (const char* address : {"0000:3b:00.0", "00000000:3B:00.0", "3b:00.0", "3B:00"})
    EXPECT_EQ(uuids(chosen({address}, host)), Texts({second})) << address;
}

TEST(Gpus, OnlyTheirDeviceFilesAreOpenedAndOnlyTheyAreVisible) {
  const Machine machine;
  const VmGpus gpus = chosen({"2", "GPU-1a2bf"}, machine.gpus());
  EXPECT_EQ(gpus.devices,
            Texts({"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidia1"}));
  Texts environment = {"A=b", "CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=FASTEST_FIRST"};
  show_only(gpus, environment);
  EXPECT_EQ(environment, Texts({"A=b", std::string("CUDA_VISIBLE_DEVICES=") + third + "," + second,
                                "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
}

constexpr const char* there_are =
    "; this host has GPU 0 (GPU-1a2b3c4d-0000-0000-0000-000000000001, 0000:19:00.0), GPU 1 "
    "(GPU-1a2bffff-0000-0000-0000-000000000002, 0000:3b:00.0) and GPU 2 "
    "(GPU-99999999-0000-0000-0000-000000000003, 0000:81:00.0)";

TEST(Gpus, AMistakeGetsOneSentence) {
  const Machine machine;
  const auto host = machine.gpus();
  const auto unknown = [](const std::string& name) { return "there is no GPU \"" + name + "\"" + there_are; };
  for (const char* name : {"3", "4294967295", "GPU-7", "GPU-1A2B3", "0000:82:00.0", "0001:19:00.0", "19:00.1"})
    EXPECT_EQ(error_of({name}, host), unknown(name));
  EXPECT_EQ(error_of({"GPU-1a2b"}, host),
            std::string("\"GPU-1a2b\" begins the UUIDs of several GPUs: give more of it") + there_are);
  for (const char* name : {"first", "-1", "4294967296", "0x0", "gpu-1a2b", "0000:19:00.", "::", "1,2", " 0"})
    EXPECT_EQ(error_of({name}, host),
              '"' + std::string(name) +
                  "\" is neither an index, nor a UUID (GPU-... or MIG-...), nor a PCI address (0000:81:00.0)");
  EXPECT_EQ(error_of({"a\n\x1b[31m"}, host).rfind("\"a??[31m\" is neither", 0), 0U);
  EXPECT_EQ(error_of({"0", "1", "19:00.0"}, host),
            "\"19:00.0\" is GPU 0 (GPU-1a2b3c4d-0000-0000-0000-000000000001, 0000:19:00.0), which is named twice");
  EXPECT_EQ(error_of({"0"}, {}), "there is no GPU \"0\"; this host has no GPU: /proc/driver/nvidia/gpus lists none");
}

TEST(Gpus, OneThatIsNotReadyIsNotGiven) {
  const Machine machine;
  machine.put("0000:19:00.0", information(unread, "0000:19:00.0", "2"));
  std::filesystem::remove(machine.folder / "dev/nvidia1");
  const auto host = machine.gpus();
  EXPECT_EQ(error_of({"0"}, host),
            "GPU 0 (UUID not yet known, 0000:19:00.0) cannot be given to a VM before the driver has read its UUID: run "
            "nvidia-persistenced, or nvidia-smi once");
  EXPECT_EQ(
      error_of({"1"}, host),
      "GPU 1 (GPU-1a2bffff-0000-0000-0000-000000000002, 0000:3b:00.0) has no /dev/nvidia1: run nvidia-modprobe -c "
      "1");
  EXPECT_EQ(uuids(chosen({"2"}, host)), Texts({third}));
}

TEST(Gpus, AMigDeviceIsPassedOnAloneWithAllDeviceFiles) {
  const Machine machine;
  const auto host = machine.gpus();
  const std::string mig = "MIG-b7a1c0de-1111-2222-3333-444444444444";
  const VmGpus gpus = chosen({mig}, host);
  EXPECT_FALSE(gpus.all);
  EXPECT_TRUE(gpus.devices.empty());
  Texts environment;
  show_only(gpus, environment);
  EXPECT_EQ(environment.at(0), "CUDA_VISIBLE_DEVICES=" + mig);
  EXPECT_EQ(uuids(chosen({"MIG-GPU-1a2b3c4d-0000-0000-0000-000000000001/1/0"}, host)).size(), 1U);
  const std::string alone = "a MIG device stands alone: CUDA shows a process one of them, and nothing beside it";
  EXPECT_EQ(error_of({mig, "0"}, host), alone);
  EXPECT_EQ(error_of({mig, mig}, host), alone);
  for (const std::string& name :
       {std::string("MIG-"), std::string("MIG-a,GPU-1a2b3"), std::string("MIG-a b"), "MIG-" + std::string(100, 'a')})
    EXPECT_EQ(error_of({name}, host), '"' + name + "\" is no MIG device's UUID, as nvidia-smi -L shows it");
  EXPECT_EQ(error_of({mig}, {}).rfind("there is no GPU that could have the MIG device \"" + mig + "\"", 0), 0U);
  EXPECT_EQ(error_of({mig}, simulated_gpus("2")).rfind("there is no GPU that could have the MIG device", 0), 0U);
}

TEST(Gpus, AGuestSeesSixteenAtMost) {
  std::vector<Gpu> host(17);
  Texts wanted;
  for (unsigned i = 0; i < host.size(); ++i) {
    host[i] = {i, "GPU-" + std::to_string(i), "0000:19:00.0", "/dev/nvidia" + std::to_string(i), false};
    wanted.push_back(std::to_string(i));
  }
  EXPECT_EQ(error_of(wanted, host), "a guest sees 16 GPUs at most");
  wanted.pop_back();
  EXPECT_EQ(chosen(wanted, host).list.size(), 16U);
}

TEST(Gpus, SimulatedOnesAreCounted) {
  EXPECT_EQ(simulated_gpus(nullptr).size(), 1U);
  const auto gpus = simulated_gpus("8");
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[7].uuid, "GPU-69766770-752d-7369-6d00-000000000008");
  EXPECT_EQ(gpus[7].pci, "0000:08:00.0");
  for (const char* bad : {"", "0", "9", "-1", "x", "99999999999"}) EXPECT_TRUE(simulated_gpus(bad).empty()) << bad;
  // The devices that all GPUs share, without those of a single GPU.
  EXPECT_EQ(chosen({"3", "02:00.0"}, gpus).devices.size(), 3U);
}

// ---- the key in the file -------------------------------------------------------------------------------------------

Texts key(const std::string& text) { return host::broker::parse_config(text, "f.toml", 8)->vms.at(0).gpus; }

TEST(GpusKey, TakesAWordOrAnArray) {
  EXPECT_EQ(key("[vm.a]"), Texts());
  EXPECT_EQ(key("[vm.a]\ngpus = \"all\""), Texts());
  EXPECT_EQ(key("[vm.a]\ngpus = [0, \"GPU-1a2b\", \"0000:81:00.0\"]"), Texts({"0", "GPU-1a2b", "0000:81:00.0"}));
  EXPECT_EQ(key("[defaults]\ngpus = [1]\n[vm.a]\ngpus = \"all\""), Texts());
  EXPECT_EQ(key("[defaults]\ngpus = [1]\n[vm.a]"), Texts({"1"}));
}

TEST(GpusKey, TakesNothingElse) {
  const std::pair<const char*, const char*> mistakes[] = {{"[]", "[]"},
                                                          {"\"0\"", "\"0\""},
                                                          {"\"\"", "\"\""},
                                                          {"0", "0"},
                                                          {"[1.5]", "[1.5]"},
                                                          {"[true]", "[true]"},
                                                          {"[[0], 1]", "[[0], 1]"},
                                                          {"[\"\"]", "[\"\"]"},
                                                          {"{ a = 1 }", "a table"},
                                                          {"[\"a\\u0000b\"]", nullptr}};
  for (const auto& [value, shown] : mistakes) {
    const std::string error =
        ::error_of(host::broker::parse_config(std::string("[vm.a]\ngpus = ") + value, "f.toml", 8));
    EXPECT_NE(error.find("gpus takes \"all\", or an array of GPUs, each by its index, its UUID (or how that begins) or "
                         "its PCI address"),
              std::string::npos)
        << error;
    if (shown == nullptr) continue;
    EXPECT_EQ(error.rfind(std::string("f.toml: [vm.a] gpus = ") + shown + ": ", 0), 0U) << error;
  }
}

Outcome checked(const Folder& folder, const std::string& gpus) {
  const std::string file = folder.write(
      "c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                    "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\n[vm.a]\n[vm.b]\ngpus = " + gpus +
                    "\n");
  return run_program("/usr/bin/env", {"IVGPU_SIM_DEVICES=2", IVGPUD, "--check", "--config", file});
}

TEST(GpusKey, IsCheckedWithTheConfiguration) {
  const Folder folder;
  const Outcome good = checked(folder, "[1]");
  EXPECT_EQ(good.code, 0) << good.text;
  const Outcome bad = checked(folder, "[2]");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.text, "ivgpud: " + (folder / "c.toml") +
                          ": [vm.b] gpus: there is no GPU \"2\"; this host has GPU 0 "
                          "(GPU-69766770-752d-7369-6d00-000000000001, 0000:01:00.0) and GPU 1 "
                          "(GPU-69766770-752d-7369-6d00-000000000002, 0000:02:00.0)\n");
}

TEST(WorkerOptions, ADeviceIsOneOfNvidias) {
  for (const char* path : {"", "/dev/kvm", "/dev", "/", "/dev/nvidia/../sda", "nvidia0"}) {
    const Outcome outcome = run_program(FAKE_WORKER, {"--device", path});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.text.find("is no option of a worker"), std::string::npos) << outcome.text;
  }
  const Outcome good = run_program(FAKE_WORKER, {"--device", "/dev/nvidia0", "--device", "/dev/nvidiactl"});
  EXPECT_NE(good.text.find("--control-fd, "), std::string::npos) << good.text;
}

// ---- one broker per GPU -------------------------------------------------------------------------------------------

TEST(GpuHolds, AGpuThatAnotherProcessHoldsIsRefusedUntilThatEnds) {
  const Gpu gpu{0, "GPU-of-test-" + std::to_string(getpid()), "0000:19:00.0", "/dev/nvidia2", false};
  GpuHolds others;
  AnsweringChild<bool> other([&] { return static_cast<bool>(others.take({gpu})); });
  ASSERT_EQ(other.answer, true);
  GpuHolds holds;
  EXPECT_EQ(::error_of(holds.take({gpu})),
            "GPU 0 (" + gpu.uuid + ", 0000:19:00.0): process " + std::to_string(other.pid) +
                " gives it out by leases, quotas or MPS already, and two brokers would not know of each other: end "
                "that one, name other GPUs by the key gpus, or, without quotas, set policy = \"time-slice\" in [gpu]");
  other.end();
  EXPECT_EQ(::error_of(holds.take({gpu})), "");
  EXPECT_EQ(::error_of(holds.take({gpu, gpu})), "") << "what is held already";
  GpuHolds second;
  EXPECT_FALSE(second.take({gpu}));
  host::broker::Config config;
  config.gpu.policy = "time-slice";
  config.vms.resize(1);
  const std::vector<VmGpus> gpus = {{true, {gpu}, {}}};
  EXPECT_EQ(::error_of(second.take_for(config, gpus)), "") << "the driver slices, whoever it is";
  config.vms[0].gpu_memory = 1 << 30;
  EXPECT_FALSE(second.take_for(config, gpus));
  config.vms[0].gpu_memory = 0, config.gpu.policy = "shared";
  EXPECT_FALSE(second.take_for(config, gpus));
}

}  // namespace
