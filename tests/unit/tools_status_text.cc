// A broker's status as text, where the document holds what no broker would say: control characters and numbers that are
// none.
#include <gtest/gtest.h>

#include <string>

#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"

namespace ivgpu {
namespace {

std::string document(const std::string& missing, const std::string& worker, const std::string& calls) {
  return R"({"format":1,"version":"0.1.0","process":7,"up_s":5,"library":"/lib/libcuda.so.1","vms":[{"name":"t",)"
         R"("socket":"/run/t.sock","memory":"","region_bytes":67108864,"slot_bytes":20971520,"connections":1,)"
         R"("jail":"best-effort","slots":[{"slot":0,"state":"ready","worker":)" +
         worker + R"(,"jail":{"layers":["user"],"missing":")" + missing + R"("},"counters":{"calls":)" + calls +
         "}}]}]}";
}

std::string refusal_of(const std::string& text) {
  try {
    return "shown: " + status_as_text(text);
  } catch (const Error& refused) {
    return refused.what();
  }
}

TEST(StatusText, NobodysTextMovesTheCursor) {
  const std::string text = status_as_text(document(R"(landlock (\u001b[2J\u009b1m\r\nVM b \\x1b\u007f))", "8", "9"));
  EXPECT_NE(text.find(R"(missing: landlock (\x1b[2J\xc2\x9b1m\x0d\x0aVM b \x1b\x7f))"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\nVM b"), std::string::npos);
}

TEST(StatusText, AFractionIsNoNumberOfAnything) {
  const std::string sentence = "the broker's status is not complete: a number stands where a whole number belongs";
  EXPECT_EQ(refusal_of(document("", "1e300", "9")), sentence);
  EXPECT_EQ(refusal_of(document("", "8", "1e300")), sentence);
  EXPECT_EQ(refusal_of(document("", "8.5", "9")), sentence);
  EXPECT_EQ(refusal_of(document("", R"("8")", "9")),
            "the broker's status is not complete: a string stands where a whole number belongs");
  EXPECT_EQ(refusal_of(document("", "8", "18446744073709551615")).substr(0, 6), "shown:");
}

// Two VMs that take turns, as a broker tells it.
TEST(StatusText, TurnsAreTold) {
  const auto vm = [](const std::string& name, const std::string& turns) {
    return R"({"name":")" + name +
           R"(","socket":"","region_bytes":1,"slot_bytes":1,"connections":1,"jail":"off","slots":[],"turns":)" + turns +
           "}";
  };
  const std::string text = status_as_text(
      R"({"format":1,"version":"0.1.0","process":7,"up_s":5,"library":"sim","gpus":[{"gpu":"GPU-1","takes_turns":true}],"vms":[)" +
      vm("a", R"({"weight":1,"taken":30,"held_s":1.0,"wait_p50_s":0.002,"wait_p99_s":0.0041,"sliced":0})") + "," +
      vm("b", R"({"weight":3,"taken":90,"held_s":3.0,"wait_p50_s":0.001,"wait_p99_s":0.002,"sliced":2})") + "]}");
  EXPECT_NE(text.find("GPU-1: turns\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  turns: 30, weight 1, 25 % of all turns' time (1.0 s), waits p50 2.0 ms, p99 4.1 ms\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("weight 3, 75 %"), std::string::npos) << text;
  EXPECT_NE(text.find("left to time slices, since their work does not end: 2 processes\n"), std::string::npos) << text;
}

// Three VMs: measured and estimated, estimated alone, and told by nobody; and one of a broker that knows of no such time.
TEST(StatusText, TheTimeOnGpusIsTold) {
  const auto vm = [](const std::string& name, const std::string& more) {
    return R"({"name":")" + name +
           R"(","socket":"","region_bytes":1,"slot_bytes":1,"connections":1,"jail":"off","slots":[])" + more + "}";
  };
  const std::string head = R"({"format":1,"version":"0.1.0","process":7,"up_s":5,"library":"sim","vms":[)";
  const std::string text = status_as_text(
      head + vm("a", R"(,"gpu_time":{"turns_s":1.0,"samples_s":2.04,"missing":""})") + "," +
      vm("b", R"(,"gpu_time":{"turns_s":null,"samples_s":1.0,"missing":"x\u001b"})") + "," +
      vm("c", R"(,"gpu_time":{"turns_s":null,"samples_s":null,"missing":"y"})") + "," + vm("d", "") + "]}");
  EXPECT_NE(text.find("\n  GPU time: 75 % of all VMs', 1.0 s by turns, 2.0 s by samples\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  GPU time: 25 % of all VMs', 1.0 s by samples\n"
                      "  GPU time: not told while the driver slices: x\\x1b\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  GPU time: not told while the driver slices: y\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPU time", text.find("VM d")), std::string::npos) << text;
  EXPECT_EQ(refusal_of(head + vm("a", R"(,"gpu_time":7)") + "]}").substr(0, 35), "the broker's status is not complete");
}

}  // namespace
}  // namespace ivgpu
