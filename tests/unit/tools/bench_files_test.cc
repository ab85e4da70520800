// The files of `ivgpu bench`: a round trip through JSON, a comparison of two runs, and files that cannot be written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/tools/bench_report.h"
#include "tools/ivgpu/bench/report/against.h"
#include "tools/ivgpu/bench/report/json.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/output_file.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu::bench {
namespace {

namespace fs = std::filesystem;

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, exit_code::usage);
    return error.what();
  }
  return "it was taken";
}

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(BenchJson, ComesBackAsItWas) {
  const Report before = some_report();
  const Report after = report_from_json(as_json(before), "x");
  EXPECT_EQ(after.setting.gpu, "Some GPU");
  EXPECT_EQ(after.setting.switches, before.setting.switches);
  ASSERT_EQ(after.metrics.size(), before.metrics.size());
  for (std::size_t k = 0; k < after.metrics.size(); ++k) {
    EXPECT_TRUE(after.metrics[k].is(before.metrics[k]));
    EXPECT_EQ(after.metrics[k].ratio(), before.metrics[k].ratio());
    EXPECT_EQ(after.metrics[k].ivgpu->p99, before.metrics[k].ivgpu->p99);
    EXPECT_EQ(after.metrics[k].ivgpu->each.size(), before.metrics[k].ivgpu->each.size());
  }
  EXPECT_FALSE(after.metrics[1].native);
}

TEST(BenchJson, HasThePercentiles) {
  const std::string text = as_json(some_report());
  EXPECT_NE(text.find("\"percentiles\": ["), std::string::npos);
  EXPECT_NE(text.find("\"ratio\": 1.2"), std::string::npos) << text;
}

TEST(BenchJson, OfSomethingElse) {
  const auto read = [](const std::string& text) { return refusal([&] { report_from_json(text, "old.json"); }); };
  for (const char* text : {"", "{", "[]", "7", "{\"figures\": []}"})
    EXPECT_EQ(read(text), "old.json is no JSON of ivgpu bench") << text;
  EXPECT_EQ(read("{\"format\": 2}"),
            "old.json is of another version of ivgpu bench: its format is 2, and this one knows 1");
  EXPECT_EQ(read("{\"format\": \"new\"}"),
            "old.json is of another version of ivgpu bench: its format is \"new\", and this one knows 1");
}

TEST(BenchJson, ThatLacksSomething) {
  std::string text = as_json(some_report());
  EXPECT_EQ(refusal([&] { report_from_json("{\"format\": 1}", "old.json"); }).rfind("old.json is not complete: ", 0),
            0U);
  text.replace(text.find("\"us\""), 4, "\"yd\"");
  EXPECT_EQ(refusal([&] { report_from_json(text, "old.json"); }),
            "old.json is not complete: a unit that this ivgpu does not know");
  text = as_json(some_report());
  text.replace(text.find("\"p50\": "), 7, "\"p50\": [], \"q\": ");
  EXPECT_EQ(refusal([&] { report_from_json(text, "old.json"); }).rfind("old.json is not complete: ", 0), 0U);
}

// The run, with every figure of ivgpu slower by this factor.
Report slower(double factor) {
  Report report = some_report();
  for (Metric& f : report.metrics) {
    const double by = more_is_better(f.unit) ? 1 / factor : factor;
    f.ivgpu->p50 *= by;
  }
  return report;
}

const Change& change_of(const Comparison& comparison, const std::string& label) {
  for (const Change& change : comparison.changes)
    if (change.label == label) return change;
  throw std::out_of_range(label);
}

TEST(Against, ItselfNothingIsWorse) {
  const Comparison same = compare(some_report(), some_report(), 0);
  EXPECT_FALSE(same.worse());
  EXPECT_EQ(same.changes.size(), some_report().metrics.size());
  EXPECT_TRUE(same.differences.empty());
}

TEST(Against, WorseIsMoreTimeOrALowerRate) {
  const Comparison worse = compare(some_report(), slower(1.5), 0.2);
  EXPECT_TRUE(worse.worse());
  for (const char* label : {"launch_synchronize", "pinned_h2d 1 MiB", "launch_synchronize x2"}) {
    EXPECT_NEAR(change_of(worse, label).worse_by, 0.5, 1e-9) << label;
    EXPECT_TRUE(change_of(worse, label).too_much) << label;
  }
}

TEST(Against, BetterIsNotWorse) { EXPECT_FALSE(compare(some_report(), slower(0.5), 0).worse()); }

TEST(Against, TheMarginIsKept) {
  EXPECT_FALSE(compare(some_report(), slower(1.19), 0.2).worse());
  EXPECT_TRUE(compare(some_report(), slower(1.21), 0.2).worse());
}

TEST(Against, AMachineThatIsSlowerAsAWholeIsNotWorse) {
  Report slow = slower(2);
  for (Metric& f : slow.metrics)
    if (f.native) f.native->p50 *= more_is_better(f.unit) ? 0.5 : 2;
  EXPECT_FALSE(compare(some_report(), slow, 0.01).worse());
}

TEST(Against, ANothingOfAProcessorIsAsGoodAsAnother) {
  const auto with_idle = [](double percent) {
    Report report = some_report();
    report.metrics[1].ivgpu->p50 = percent;
    return report;
  };
  EXPECT_FALSE(compare(with_idle(0), with_idle(0.05), 0.2).worse());
  EXPECT_TRUE(compare(with_idle(0), with_idle(3), 0.2).worse());
}

TEST(Against, SomeNanosecondsAreNone) {
  const auto with_call = [](double microseconds) {
    Report report = some_report();
    report.metrics[0].ivgpu->p50 = microseconds;
    return report;
  };
  EXPECT_FALSE(compare(with_call(0.01), with_call(0.025), 0.2).worse());
  EXPECT_TRUE(compare(with_call(0.01), with_call(0.035), 0.2).worse());
}

TEST(Against, OnlyWhatBothHaveIsCompared) {
  Report other = some_report();
  other.metrics.erase(other.metrics.begin(), other.metrics.begin() + 3);
  EXPECT_EQ(compare(some_report(), other, 0.2).changes.size(), 2U);
  EXPECT_TRUE(compare({some_setting(), {}, {}}, other, 0.2).changes.empty());
}

TEST(Against, AWorkersProcessorTimeIsComparedByItself) {
  Report before = some_report(), now = some_report();
  before.metric({.group = "kernels", .name = "worker_back_to_back"}).ivgpu = summary_of({2}, false);
  now.metric({.group = "kernels", .name = "worker_back_to_back"}).ivgpu = summary_of({3}, false);
  const Change change = compare(before, now, 0.2).changes.back();
  EXPECT_EQ(change.what, "us");
  EXPECT_TRUE(change.too_much);
  EXPECT_FALSE(compare(now, before, 0.2).worse());
}

TEST(Against, ReportsDifferences) {
  Report other = some_report();
  other.setting.policy = "MPS";
  other.setting.switches[0].second = "spin";
  const std::string text = comparison_text(compare(some_report(), other, 0.2), 0.2, Style::Plain);
  EXPECT_NE(text.find("Not the same: the policy was time slices and is MPS.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Not the same: IVGPU_OFF was - and is spin.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Nothing is worse by more than the margin of 20 %.\n"), std::string::npos) << text;
}

TEST(Against, TheTextNamesWhatIsTooMuch) {
  const std::string text = comparison_text(compare(some_report(), slower(1.5), 0.2), 0.2, Style::Markdown);
  EXPECT_NE(text.find("| launch_synchronize | ratio | 1.200 | 1.800 | 50 % worse | TOO MUCH |"), std::string::npos)
      << text;
  EXPECT_NE(text.find("Something is worse, by more than the margin of 20 %.\n"), std::string::npos) << text;
}

TEST(OutputFile, IsThereOnlyOnceItIsWhole) {
  const TempDir folder;
  const fs::path path = folder.path() / "run.json";
  {
    OutputFile file(path);
    file.write("te");
    file.write("xt");
    EXPECT_FALSE(fs::exists(path));
    file.finish();
    EXPECT_EQ(contents(path), "text");
  }
  EXPECT_EQ(contents(path), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFile, WithoutBeingFinishedLeavesTheOlderOneAndNothingElse) {
  const TempDir folder;
  const fs::path path = folder.path() / "run.json";
  std::ofstream(path) << "older";
  OutputFile(path).write("half");
  EXPECT_EQ(contents(path), "older");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFile, HasTheRightsOfOtherFiles) {
  const TempDir folder;
  const mode_t before = umask(027);
  OutputFile(folder.path() / "run.json").finish();
  umask(before);
  struct stat info {};
  ASSERT_EQ(stat((folder.path() / "run.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST(OutputFile, ThatCannotBeWritten) {
  const TempDir folder;
  EXPECT_EQ(refusal([] { OutputFile file("/nowhere/run.svg"); }),
            "/nowhere/run.svg cannot be written: No such file or directory");
  EXPECT_EQ(refusal([&] { OutputFile file(folder.path()); }),
            folder.path().string() + " cannot be written: Is a directory");
}

TEST(OutputFile, ADeviceIsWrittenTo) { OutputFile("/dev/null").finish(); }

TEST(OutputFile, ThatFillsUp) {
  EXPECT_EQ(refusal([] {
              OutputFile file("/dev/full");
              file.write("text");
              file.finish();
            }),
            "/dev/full cannot be written: No space left on device");
}

}  // namespace
}  // namespace ivgpu::bench
