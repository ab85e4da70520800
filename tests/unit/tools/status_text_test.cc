// A broker's status as text, for a document with control characters and invalid numbers, which no broker would send.
#include <gtest/gtest.h>

#include <string>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"

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

// Two VMs that alternate on a GPU; then three VMs, one of them with a broker that does not report GPU time.
TEST(StatusText, TheTimeOnGpusIsReported) {
  const auto vm = [](const std::string& name, const std::string& more) {
    return R"({"name":")" + name +
           R"(","socket":"","region_bytes":1,"slot_bytes":1,"connections":1,"jail":"off","slots":[])" + more + "}";
  };
  const auto time = [](const std::string& had, int weight) {
    return R"(,"gpu_time":{"had_s":)" + had + R"(,"waited_s":2.0,"leases":80,"preempted":3,"weight":)" +
           std::to_string(weight) + "}";
  };
  const std::string head =
      R"({"format":1,"version":"0.1.0","process":7,"up_s":5,"library":"sim","gpu_time_missing":"x\u001b","gpus":[)"
      R"({"gpu":"GPU-1","sharing":"leases"},{"gpu":"GPU-2","takes_turns":true}],"vms":[)";
  const std::string text =
      status_as_text(head + vm("a", time("3.04", 2)) + "," + vm("b", time("1.0", 1)) + "," + vm("d", "") + "]}");
  EXPECT_NE(text.find("GPU-1: leases\nno leases: x\\x1b\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find("\n  GPU time: 75 % of all VMs', 3.0 s, weight 2; leases 80, 3 of them preempted; waited 2.0 s\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  GPU time: 25 % of all VMs', 1.0 s, weight 1;"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPU time", text.find("VM d")), std::string::npos) << text;
  EXPECT_EQ(status_as_text(head + vm("a", R"(,"gpu_time":7)") + "]}").find("GPU time"), std::string::npos);
}

}  // namespace
}  // namespace ivgpu
