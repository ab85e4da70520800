// The guest's libnvidia-ml.so.1 with a real broker must answer as an H200's library does, and report the memory of the
// calling program.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/broker/watched_broker.h"
#include "tests/unit/usage_file.h"

namespace {

using namespace broker_test;

// A call with its answer, or a heading.
struct Line {
  std::string name;
  int answer = -1;
  bool operator==(const Line&) const = default;
};

std::vector<Line> lines_of(const std::string& text) {
  static const std::regex call(R"(^.*?\b(nvml[A-Za-z0-9_]+)\s+(-?[0-9]+)\b.*|^(--) .*)");
  std::vector<Line> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, call)) continue;
    lines.push_back(found[3].matched ? Line{"--", 0} : Line{found[1], std::stoi(found[2])});
  }
  return lines;
}

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Values that a guest without a whole GPU does not get (docs/design/044-nvml.md).
const std::set<std::string> not_told = {"nvmlDeviceGetSerial", "nvmlDeviceGetBAR1MemoryInfo"};
constexpr int not_supported = 3;

class Nvml : public testing::Test {
 protected:
  explicit Nvml(const std::string& keys = "")
      : broker_(
            keys, "", [] { setenv("IVGPU_SIM_DEVICES", "2", 1); }, "sim") {}
  std::string said_by(const std::vector<std::string>& program) const {
    std::vector<std::string> words = {"IVGPU_REGION=" + (broker_.folder / "t.sock"),
                                      std::string("LD_LIBRARY_PATH=") + GUEST_FOLDER};
    words.insert(words.end(), program.begin(), program.end());
    const Outcome outcome = run_program("/usr/bin/env", words);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return outcome.text;
  }
  WatchedBroker broker_;
};

TEST_F(Nvml, AnswersAsThatOfAnH200) {
  const std::string text = said_by({NVML_ANSWERS});
  const std::vector<Line> golden = lines_of(text_of_file(NVML_GOLDEN)), seen = lines_of(text);
  ASSERT_GT(golden.size(), 90U);
  ASSERT_EQ(seen.size(), golden.size()) << text;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(seen[i].name, golden[i].name) << i;
    const bool is_told = golden[i].answer != 0 || !not_told.contains(golden[i].name);
    EXPECT_EQ(seen[i].answer, is_told ? golden[i].answer : not_supported) << i << " " << golden[i].name;
  }
}

// The text has the answers before and after the program creates a context and allocates 100 MiB.
TEST_F(Nvml, ReportsItsOwnMemoryToAProgram) {
  const std::string text = said_by({NVML_ANSWERS});
  std::vector<std::uint64_t> used;
  static const std::regex plain("  total [0-9]+ free [0-9]+ used ([0-9]+)"), own("  this one holds ([0-9]+), .*");
  std::uint64_t holds = 0;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    std::smatch found;
    if (std::regex_match(line, found, plain)) used.push_back(std::stoull(found[1]));
    if (std::regex_match(line, found, own)) holds = std::stoull(found[1]);
  }
  ASSERT_EQ(used.size(), 2U) << text;
  EXPECT_GE(used[1], used[0] + (100U << 20));
  EXPECT_GE(holds, 100U << 20) << text;
  EXPECT_LT(holds, 1U << 30) << text;
}

class NvmlOfAQuota : public Nvml {
 protected:
  NvmlOfAQuota() : Nvml("gpu_memory = \"512MiB\"\ngpus = [1]") {}
};

TEST_F(NvmlOfAQuota, ReportsTheQuotaAndTheVmsGpus) {
  const std::string text = said_by({NVML_ANSWERS});
  EXPECT_NE(text.find("  total 536870912 free "), std::string::npos) << text;
  EXPECT_EQ(text.find("  total 4294967296 free "), std::string::npos) << text;
  EXPECT_NE(text.find("\"GPU-69766770-752d-7369-6d00-000000000002\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"GPU-69766770-752d-7369-6d00-000000000001\""), std::string::npos) << text;
}

// The configuration names no GPUs, and the broker's environment hides a GPU from CUDA.
TEST(NvmlAndTheEnvironment, ReportsTheGpusOfTheWorkers) {
  WatchedBroker broker(
      "", "",
      [] {
        setenv("IVGPU_SIM_DEVICES", "2", 1);
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
      },
      "sim");
  const std::string region = "IVGPU_REGION=" + (broker.folder / "t.sock"),
                    folder = std::string("LD_LIBRARY_PATH=") + GUEST_FOLDER;
  const std::string text =
      run_program("/usr/bin/env", {region, folder, NVML_ANSWERS, "libnvidia-ml.so.1", "no-memory"}).text;
  EXPECT_NE(text.find("\"GPU-69766770-752d-7369-6d00-000000000002\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"GPU-69766770-752d-7369-6d00-000000000001\""), std::string::npos) << text;
}

// Utilisation of a VM with intermittent work, of an idle VM, and of the unused second GPU.
TEST(NvmlOfTwoVms, ReportEachItsOwnUtilisation) {
  UsageFile usage;
  WatchedBroker broker(
      "[vm.u]\n", "",
      [path = usage.path] {
        setenv("IVGPU_SIM_DEVICES", "2", 1);
        setenv("IVGPU_SIM_USAGE", path.c_str(), 1);
      },
      "sim");
  const auto region = [&](const char* vm) { return "IVGPU_REGION=" + (broker.folder / (std::string(vm) + ".sock")); };
  const pid_t worker = fork();
  if (worker == 0) {
    const std::string of_t = region("t"), progress = broker.folder / "progress";
    execl("/usr/bin/env", "env", of_t.c_str(), LOAD_PROGRAM, GUEST_CUDA, progress.c_str(), "long", nullptr);
    _exit(126);
  }
  const auto percent = [&](const char* vm, const char* gpu) {
    const std::string folder = std::string("LD_LIBRARY_PATH=") + GUEST_FOLDER;
    const Outcome outcome =
        run_program("/usr/bin/env", {region(vm), folder, NVML_ANSWERS, "libnvidia-ml.so.1", "utilisation", gpu});
    return outcome.code == 0 ? std::stoi(outcome.text) : -1;
  };
  EXPECT_TRUE(eventually([&] { return percent("t", "0") > 0; }));
  EXPECT_EQ(percent("u", "0"), 0) << "another VM's work";
  EXPECT_EQ(percent("t", "1"), 0);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return percent("t", "0") == 0; })) << percent("t", "0");
}

// NVML takes no slot: a monitor would otherwise occupy a slot for as long as the monitor runs.
TEST_F(Nvml, TakesNoSlot) {
  const std::string log = broker_.log();
  said_by({NVML_ANSWERS, "libnvidia-ml.so.1", "no-memory"});
  EXPECT_EQ(broker_.log().find("is claimed", log.size()), std::string::npos);
}

}  // namespace
