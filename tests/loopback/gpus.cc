// A broker with three simulated GPUs, and VMs that each see different GPUs (the key `gpus`).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;

// VM t has the default, all GPUs; VMs u and v have their own lists.
class Gpus : public testing::Test {
 protected:
  static constexpr const char* vms =
      "spare = 1\n[vm.u]\ngpus = [2, \"GPU-69766770-752d-7369-6d00-000000000001\"]\n[vm.v]\ngpus = "
      "[\"0000:02:00.0\"]\n";

  std::string seen_by(const std::string& vm) const {
    const Outcome outcome = run_program(
        "/usr/bin/env", {"IVGPU_REGION=" + (broker_.folder / (vm + ".sock")), PROGRAM, GUEST_CUDA, "devices"});
    EXPECT_EQ(outcome.code, 0) << vm << ": " << outcome.text;
    return outcome.text;
  }

  WatchedBroker broker_{vms, "", [] { setenv("IVGPU_SIM_DEVICES", "3", 1); }, "sim"};
};

TEST_F(Gpus, EachVmSeesItsOwnByOrdinalsOfItsOwn) {
  EXPECT_EQ(seen_by("t"),
            "0 69766770752d73696d00000000000001 0000:01:00.0\n1 69766770752d73696d00000000000002 0000:02:00.0\n"
            "2 69766770752d73696d00000000000003 0000:03:00.0\nworks\n");
  EXPECT_EQ(seen_by("u"),
            "0 69766770752d73696d00000000000003 0000:03:00.0\n1 69766770752d73696d00000000000001 0000:01:00.0\n"
            "works\n");
  EXPECT_EQ(seen_by("v"), "0 69766770752d73696d00000000000002 0000:02:00.0\nworks\n");
}

TEST_F(Gpus, TheStatusReportsThem) {
  const std::vector<std::string> words = {"status", "--runtime-dir", broker_.folder.path()};
  const std::string text = run_program(IVGPU, words).text;
  EXPECT_NE(text.find("  GPUs: all\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  GPU 0: host's 2, GPU-69766770-752d-7369-6d00-000000000003, 0000:03:00.0\n"
                      "  GPU 1: host's 0, GPU-69766770-752d-7369-6d00-000000000001, 0000:01:00.0\n"),
            std::string::npos)
      << text;
  const auto json =
      nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker_.folder.path()}).text);
  for (const auto& vm : json.at("vms")) {
    const std::string name = vm.at("name");
    EXPECT_EQ(vm.at("all_gpus").get<bool>(), name == "t");
    EXPECT_EQ(vm.at("gpus").size(), name == "t" ? 3U : name == "u" ? 2U : 1U);
  }
}

// The key `gpus` overrides CUDA_VISIBLE_DEVICES of the broker's environment; the value "all" keeps it.
TEST(GpusAndTheEnvironment, TheKeyGoesFirst) {
  const WatchedBroker broker(
      "[vm.u]\ngpus = [2]", "",
      [] {
        setenv("IVGPU_SIM_DEVICES", "3", 1);
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
      },
      "sim");
  const auto seen_by = [&](const std::string& vm) {
    return run_program("/usr/bin/env",
                       {"IVGPU_REGION=" + (broker.folder / (vm + ".sock")), PROGRAM, GUEST_CUDA, "devices"})
        .text;
  };
  EXPECT_EQ(seen_by("t"), "0 69766770752d73696d00000000000002 0000:02:00.0\nworks\n");
  EXPECT_EQ(seen_by("u"), "0 69766770752d73696d00000000000003 0000:03:00.0\nworks\n");
  EXPECT_TRUE(broker.eventually_logged("u: the key gpus goes before CUDA_VISIBLE_DEVICES of the environment"));
  EXPECT_FALSE(broker.logged("t: the key gpus"));
}

// A program's own list selects from all GPUs of the host. This holds also in `ivgpu run`, whose broker has the same
// environment. The list must be applied only once, with the driver's own result.
TEST(GpusAndTheEnvironment, AProgramsListIsAppliedOnce) {
  const std::string third = "GPU-69766770-752d-7369-6d00-000000000003";
  const auto seen = [&](const std::string& list, std::vector<std::string> how) {
    std::vector<std::string> words = {"IVGPU_SIM_DEVICES=3", "CUDA_VISIBLE_DEVICES=" + list, IVGPU};
    words.insert(words.end(), how.begin(), how.end());
    words.insert(words.end(), {PROGRAM, "libcuda.so.1", "devices"});
    const std::string text = run_program("/usr/bin/env", words).text;
    return std::regex_replace(text, std::regex("ivgpu: [^\\n]*\\n"), "");  // removes our library's messages
  };
  for (const std::string list : {"1", "2,0", "1,7,0", "0x2", third.c_str(), "-1", "", "junk", "0,0", "9"}) {
    const std::string natively = seen(list, {"sim"}), through_us = seen(list, {"run", "--private", "--gpu", "sim"});
    EXPECT_FALSE(natively.empty());
    EXPECT_EQ(through_us, natively) << '"' << list << '"';
  }
  EXPECT_EQ(seen("2", {"run", "--private", "--gpu", "sim"}),
            "0 69766770752d73696d00000000000003 0000:03:00.0\nworks\n");
}

}  // namespace
