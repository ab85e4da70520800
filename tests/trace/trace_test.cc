// Runs vector_add under `ivgpu trace`: the trace must show the program's known calls, in order and with their
// arguments, as lines, as totals, and as a file for the Perfetto viewer.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;
using nlohmann::json;

Outcome trace(std::vector<std::string> options, const std::vector<std::string>& program) {
  options.insert(options.begin(), "trace");
  options.emplace_back("--");
  options.insert(options.end(), program.begin(), program.end());
  return run_program(IVGPU, options);
}
const std::vector<std::string> vector_add = {PROGRAM, "--n", "1000"};

// A call of the Perfetto file: its name, and its arguments by name.
struct Call {
  std::string name;
  json args;
  double begin, end;
};

std::vector<Call> calls_in(const std::string& text) {
  std::vector<Call> calls;
  const json document = json::parse(text, nullptr, false);
  EXPECT_TRUE(document.is_object()) << text.substr(0, 200);
  std::set<std::string> tracks;
  for (const json& e : document.at("traceEvents")) {
    if (e.at("ph") == "M") tracks.insert(e.at("args").at("name").get<std::string>());
    if (e.at("ph") == "X")
      calls.push_back({e.at("name"), e.at("args"), e.at("ts"), e.at("ts").get<double>() + e.at("dur").get<double>()});
  }
  EXPECT_EQ(tracks.count("channel 0"), 1u);
  EXPECT_TRUE(
      std::any_of(tracks.begin(), tracks.end(), [](const auto& t) { return t.rfind("VM local, slot ", 0) == 0; }));
  return calls;
}

TEST(TraceOfVectorAdd, AsAFileForPerfetto) {
  const Folder folder;
  const std::string file = folder / "trace.json";
  const Outcome outcome = trace({"--gpu", "sim", "--perfetto", file}, vector_add);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("missing"), std::string::npos) << outcome.text;
  const std::vector<Call> calls = calls_in(folder.read("trace.json"));
  ASSERT_GE(calls.size(), 19u);
  const char* first[] = {
      "hello",         "cuMemAlloc_v2",     "cuMemcpyHtoD_v2",    "cuMemAlloc_v2",  "cuMemcpyHtoD_v2", "cuMemAlloc_v2",
      "cuMemsetD8_v2", "cuLibraryLoadData", "cuLibraryGetKernel", "cuLaunchKernel", "cuMemcpyDtoH_v2"};
  for (std::size_t i = 0; i < std::size(first); ++i) EXPECT_EQ(calls[i].name, first[i]) << i;
  for (std::size_t i = 1; i < calls.size(); ++i)
    EXPECT_GE(calls[i].begin, calls[i - 1].end) << "one channel, one track";

  const auto address_of = [&](std::size_t i) { return calls[i].args.at("-> address").get<std::string>(); };
  EXPECT_EQ(calls[1].args.at("bytes"), "4000");
  EXPECT_EQ(calls[2].args.at("to"), address_of(1));
  EXPECT_EQ(calls[4].args.at("to"), address_of(3));
  EXPECT_EQ(calls[6].args.at("address"), address_of(5));
  EXPECT_EQ(calls[6].args.at("value"), "255");
  const json& launch = calls[9].args;
  EXPECT_NE(launch.at("function").get<std::string>().find("3addIfE"), std::string::npos) << launch;
  EXPECT_EQ(launch.at("grid"), "4x1x1");
  EXPECT_EQ(launch.at("block"), "256x1x1");
  EXPECT_EQ(launch.at("parameters"), "[" + address_of(1) + " " + address_of(3) + " " + address_of(5) + " 0x3e8]");
  EXPECT_EQ(launch.at("result"), "CUDA_SUCCESS");
}

TEST(TraceOfVectorAdd, AsLines) {
  const Outcome outcome = trace({"--gpu", "sim"}, vector_add);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("vector_add: float, 1000 elements"), std::string::npos) << "the program's own output";
  const std::regex copy(R"( +[0-9]+\.[0-9]{6}  local/0\.0  cuMemcpyHtoD_v2\(to=0x[0-9a-f]+, from=with the record, )"
                        R"(bytes=4000\) = CUDA_SUCCESS  [0-9]+\.[0-9] us)");
  EXPECT_TRUE(std::regex_search(outcome.text, copy)) << outcome.text;
}

TEST(TraceOfVectorAdd, AsSums) {
  const Outcome outcome = trace({"--gpu", "sim", "--summary"}, vector_add);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.text.find("    calls   errors     total ms    mean us   longest us  call\n"), std::string::npos);
  EXPECT_TRUE(std::regex_search(outcome.text, std::regex(R"(\n +6 +0 .*  cuMemAlloc_v2\n)"))) << outcome.text;
  EXPECT_TRUE(std::regex_search(outcome.text, std::regex(R"(\n +4 +0 .*  cuLaunchKernel\n)"))) << outcome.text;
}

TEST(TraceOfVectorAdd, TheProgramsExitCodeIsPassedOn) {
  const Outcome outcome = trace({"--gpu", "sim"}, {"/bin/sh", "-c", "exit 7"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.text, "");
}

// Even at a broker that serves other programs, the trace must contain only the program's own calls, from the first one
// on.
TEST(TraceOfVectorAdd, AtARunningBroker) {
  WatchedBroker broker(
      "", "", [] {}, SIMULATED_GPU);
  setenv("IVGPU_REGION", broker.socket_path().c_str(), 1);
  const std::string add = PROGRAM;
  std::thread other([&] { EXPECT_EQ(run_program(IVGPU, {"run", "--", add, "--n", "77"}).code, 0); });
  const Outcome outcome = trace({}, vector_add);
  other.join();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("  hello(window="), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("cuMemAlloc_v2(bytes=4000)"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("cuMemAlloc_v2(bytes=308)"), std::string::npos) << "that is the other's";
  const Outcome status = run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path()});
  EXPECT_TRUE(std::regex_search(status.text, std::regex("\n  all +[1-9]"))) << status.text;
}

}  // namespace
