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

}  // namespace
}  // namespace ivgpu
