// Runs every group of cases on every backend, and compares the answers with those of NVIDIA's driver.
//
// contract_test --gpu auto --record FOLDER also writes the answers of each backend to FOLDER/<backend>.txt
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "ring/api/entry_points.h"
#include "tests/contract/backends.h"
#include "tests/contract/handles.h"
#include "tests/contract/suite.h"

namespace contract {
namespace {

std::string gpu = "sim", record_folder;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const Answers& golden() {
  static const Answers answers = parse_answers(read_file(GOLDEN));
  return answers;
}

// Returns the deviations that are allowed for `backend`. Loopback inherits the deviations of the simulated GPU that its
// worker uses.
std::vector<Expectation> expectations_of(const Backend& backend, std::vector<std::string>& complaints) {
  std::vector<Expectation> mine;
  for (Expectation& e : parse_expectations(read_file(EXPECTATIONS), complaints)) {
    const bool over_simulated = e.backend == "loopback-simulated" && &backend == &loopback && gpu == "sim";
    if (e.backend == backend.name || over_simulated) mine.push_back(std::move(e));
  }
  return mine;
}

void record(const Backend& backend, const std::string& group, const std::vector<Line>& lines) {
  if (record_folder.empty()) return;
  static std::map<std::string, Answers> all;
  Answers& answers = all[backend.name];
  answers[group] = lines;
  std::ofstream(record_folder + "/" + backend.name + ".txt") << to_text(answers);
}

// A group of cases and the backend that runs it.
struct Asked {
  const Backend* backend;
  Group group;
};
std::ostream& operator<<(std::ostream& out, const Asked& asked) {
  return out << asked.group.name << " of " << asked.backend->name;
}
std::vector<Asked> all_of(const Backend& backend) {
  std::vector<Asked> asked;
  for (const Group& group : groups()) asked.push_back({&backend, group});
  return asked;
}
std::string group_name(const testing::TestParamInfo<Asked>& info) { return info.param.group.name; }

// Runs each group once for all tests of this program.
const Outcome& outcome_of(const Backend& backend, const Group& group, const Backend::Library& library) {
  static std::map<std::pair<std::string, std::string>, Outcome> known;
  const std::pair key(backend.name, group.name);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known[key] = run_group(group, library.path, library.environment);
}

class Contract : public testing::TestWithParam<Asked> {};

TEST_P(Contract, AnswersAsTheRealDriver) {
  const auto& [backend, group] = GetParam();
  std::vector<std::string> complaints;
  const std::vector<Expectation> expectations = expectations_of(*backend, complaints);
  if (const Expectation* why = unasked(group.name, expectations); why != nullptr) GTEST_SKIP() << why->reason;
  const Backend::Library library = backend->library();
  ASSERT_TRUE(library.error.empty()) << library.error;
  const Outcome& outcome = outcome_of(*backend, group, library);
  record(*backend, group.name, outcome.lines);
  EXPECT_EQ(outcome.end, "") << "after " << (outcome.lines.empty() ? "no case" : outcome.lines.back().name);
  const auto said = golden().find(group.name);
  ASSERT_TRUE(said != golden().end()) << "no golden data of " << group.name;
  for (const std::string& c : compare(group.name, outcome.lines, said->second, expectations)) ADD_FAILURE() << c;
}

INSTANTIATE_TEST_SUITE_P(Simulated, Contract, testing::ValuesIn(all_of(simulated)), group_name);
INSTANTIATE_TEST_SUITE_P(Loopback, Contract, testing::ValuesIn(all_of(loopback)), group_name);
INSTANTIATE_TEST_SUITE_P(Real, Contract,
                         testing::ValuesIn(real_library().empty() ? std::vector<Asked>{} : all_of(real)), group_name);

// The kind of handle of each parameter type; null if the type is not a handle.
template <class P>
constexpr const char* handle_kind = nullptr;
template <>
constexpr const char* handle_kind<CUcontext> = "context";
template <>
constexpr const char* handle_kind<CUmodule> = "module";
template <>
constexpr const char* handle_kind<CUfunction> = "function";
template <>
constexpr const char* handle_kind<CUlibrary> = "library";
template <>
constexpr const char* handle_kind<CUkernel> = "kernel";
template <>
constexpr const char* handle_kind<CUstream> = "stream";
template <>
constexpr const char* handle_kind<CUevent> = "event";
template <>
constexpr const char* handle_kind<CUarray> = "array";
template <>
constexpr const char* handle_kind<CUmipmappedArray> = "mipmapped array";
template <>
constexpr const char* handle_kind<CUlinkState> = "link";
template <>
constexpr const char* handle_kind<CUtexref> = "texture reference";
template <>
constexpr const char* handle_kind<CUsurfref> = "surface reference";
template <>
constexpr const char* handle_kind<CUgreenCtx> = "green context";
template <>
constexpr const char* handle_kind<CUdevResourceDesc> = "resource description";

struct TakenHandles {
  const char* call;
  std::array<const char*, 16> kinds;  // kinds of the parameters' handles; null if a parameter is not a handle
};
template <class... P>
constexpr TakenHandles handles_of(const char* call, CUresult (*)(P...)) {
  return {call, {handle_kind<P>...}};
}

constexpr TakenHandles taken_handles[] = {
#define CALL(id, fn, ...) handles_of(#fn, static_cast<decltype(&::fn)>(nullptr)),
#define CUSTOM(id, fn, ...) handles_of(#fn, static_cast<decltype(&::fn)>(nullptr)),
#define LOCAL(fn, ...) handles_of(#fn, static_cast<decltype(&::fn)>(nullptr)),
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
};

// Checks that the required cases exist for a handle of this kind. Two cases are not required: destroyed contexts have
// golden answers (contexts_together.cc), and no call destroys a resource description.
void expect_wrong_handles(const std::string& call, const std::string& kind, const std::set<std::string>& asked) {
  for (const std::string how : {"destroyed", "another kind's", "never issued"}) {
    if (how == "destroyed" && (kind == "context" || kind == "resource description")) continue;
    const std::string name = how + " " + kind + ", " + call;
    EXPECT_TRUE(asked.contains(name)) << "no case: " << name;
  }
}

void expect_each_calls_wrong_handles(const std::set<std::string>& asked) {
  for (const TakenHandles& taken : taken_handles)
    for (const char* kind : taken.kinds)
      if (kind != nullptr) expect_wrong_handles(taken.call, kind, asked);
}

std::string refusal_of(const std::string& name) {
  if (name.ends_with(" context, cuCtxDestroy_v2")) return "CUDA_ERROR_CONTEXT_IS_DESTROYED";
  if (name.starts_with("destroyed green context, ")) return "CUDA_ERROR_CONTEXT_IS_DESTROYED";
  if (name.find(" resource description, ") != std::string::npos) return "CUDA_ERROR_INVALID_VALUE";
  return name.find(" context, ") != std::string::npos ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR_INVALID_HANDLE";
}

TEST(Loopback, RefusesWrongHandles) {
  const Backend::Library library = loopback.library();
  ASSERT_TRUE(library.error.empty()) << library.error;
  const Outcome outcome = run_group(wrong_handles, library.path, library.environment);
  EXPECT_EQ(outcome.end, "");
  std::set<std::string> asked;
  for (const Line& line : outcome.lines) asked.insert(line.name);
  expect_each_calls_wrong_handles(asked);
  for (const Line& line : outcome.lines) {
    EXPECT_EQ(line.answer, refusal_of(line.name)) << line.name;
  }
}

// Returns the calls of ring/api/driver.def that are served.
std::set<std::string> served() {
  std::set<std::string> names;
  for (const api::EntryPoint& e : api::entry_points)
    if (e.line != api::Line::Variant && e.line != api::Line::Absent) names.emplace(e.name);
  return names;
}

TEST(Table, EachGoldenGroupIsAsked) {
  std::set<std::string> names;
  for (const Group& group : groups()) EXPECT_TRUE(names.insert(group.name).second) << group.name << " is there twice";
  for (const auto& [name, lines] : golden()) EXPECT_TRUE(names.contains(name)) << "no group " << name;
}

TEST(Table, EachExpectationHasAReasonAndABackend) {
  std::vector<std::string> complaints;
  std::set<std::string> seen;
  for (const Expectation& e : parse_expectations(read_file(EXPECTATIONS), complaints)) {
    EXPECT_TRUE(e.backend == "simulated" || e.backend == "loopback" || e.backend == "loopback-simulated") << e.backend;
    EXPECT_TRUE(seen.insert(e.name + "|" + e.backend).second) << e.name << " is there twice";
    EXPECT_TRUE(golden().contains(e.name.substr(0, e.name.find(": ")))) << "no group of that name: " << e.name;
  }
  for (const std::string& c : complaints) ADD_FAILURE() << c;
}

// The calls that succeeded in some case, and the calls that failed in some case, on the simulated GPU, which serves all
// calls. Cases with null arguments also count (everything.cc).
struct Seen {
  std::set<std::string> succeeded, failed, submitted;
};
Seen seen_of_the_simulated() {
  Seen seen;
  const Backend::Library library = simulated.library();
  EXPECT_TRUE(library.error.empty()) << library.error;
  for (const Group& group : groups()) {
    const Outcome& outcome = outcome_of(simulated, group, library);
    seen.succeeded.insert(outcome.succeeded.begin(), outcome.succeeded.end());
    seen.failed.insert(outcome.failed.begin(), outcome.failed.end());
    seen.submitted.insert(outcome.submitted.begin(), outcome.submitted.end());
    if (!group.name.starts_with("nothing_")) continue;
    for (const Line& line : outcome.lines)
      if (line.answer != "CUDA_SUCCESS") seen.failed.insert(line.name);
  }
  return seen;
}

// Calls that cannot succeed on the simulated GPU. It has only one device and therefore no peer, and no sparse,
// deferred-mapping or planar arrays. It supports neither unified functions nor memory descriptors. Every driver refuses
// the remaining calls.
const std::set<std::string> without_a_good_case = {"cuCtxEnablePeerAccess",
                                                   "cuCtxDisablePeerAccess",
                                                   "cuDeviceGetP2PAttribute",
                                                   "cuArrayGetSparseProperties",
                                                   "cuMipmappedArrayGetSparseProperties",
                                                   "cuArrayGetMemoryRequirements",
                                                   "cuMipmappedArrayGetMemoryRequirements",
                                                   "cuArrayGetPlane",
                                                   "cuDeviceGetP2PAtomicCapabilities",
                                                   "cuLibraryGetUnifiedFunction",
                                                   "cuMemGetHandleForAddressRange",
                                                   "cuParamSetTexRef",
                                                   "cuProfilerInitialize"};

TEST(Table, EachServedCallHasAGoodCaseAndABadOne) {
  const Seen seen = seen_of_the_simulated();
  for (const std::string& name : served()) {
    EXPECT_TRUE(seen.failed.contains(name)) << name << " is served, but no case below tests/contract/ has it fail";
    if (without_a_good_case.contains(name)) {
      EXPECT_FALSE(seen.succeeded.contains(name)) << name << " has a good case: it must leave the list";
      continue;
    }
    EXPECT_TRUE(seen.succeeded.contains(name))
        << name << " is served, but no case below tests/contract/ has it succeed";
  }
}

// Checks the keyword `submits` of ring/api/driver.def, on which GPU scheduling depends.
TEST(Table, TheCallsThatGiveTheGpuACommandHaveTheWord) {
  const Seen seen = seen_of_the_simulated();
  for (const api::EntryPoint& e : api::entry_points) {
    if (!e.crosses()) continue;
    EXPECT_EQ(e.manner.submits, seen.submitted.contains(std::string(e.name))) << e.name;
  }
}

bool has_line(const std::string& group, const std::string& name) {
  const auto lines = golden().find(group);
  return lines != golden().end() &&
         std::any_of(lines->second.begin(), lines->second.end(), [&](const Line& l) { return l.name == name; });
}

std::string no_line(const std::string& name, const std::string& group) {
  return name + " has no line in " + group + " of the golden file; it reads \"" + name +
         ": ?\" until a real driver has been asked, and stands where the table has the call";
}

// The states are: before cuInit, with and without a context, after a reset, after a fault, and after a fork
// (everything.cc).
TEST(Table, EachServedCallIsAskedInEachStateOfAProcess) {
  const std::set<std::string> left_out = calls_that_change_the_state();
  std::size_t states = 0;
  for (const auto& [group, lines] : golden()) {
    if (!group.starts_with("nothing_")) continue;
    ++states;
    std::set<std::string> asked;
    for (const Line& line : lines) asked.insert(line.name);
    for (const std::string& name : served())
      EXPECT_TRUE(left_out.contains(name) || asked.contains(name)) << no_line(name, group);
  }
  EXPECT_EQ(states, 6u);
  for (const std::string& name : left_out) {
    EXPECT_TRUE(served().contains(name)) << name << " is no served call";
    for (const char* group : {"changes_before_init", "changes_after_fork"})
      EXPECT_TRUE(has_line(group, name) || name == "cuInit") << no_line(name, group);
  }
}

}  // namespace
}  // namespace contract

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 < argc && option == "--gpu") {
      contract::gpu = argv[i + 1];
    } else if (i + 1 < argc && option == "--record") {
      contract::record_folder = argv[i + 1];
    } else if (i + 1 < argc && option == "--worker") {
      contract::set_worker(argv[i + 1]);
    } else {
      std::cerr << "usage: contract_test [--gpu auto|sim|LIBRARY] [--record FOLDER] [--worker PROGRAM] "
                   "[GoogleTest's options]\n";
      return 2;
    }
  }
  contract::set_gpu(contract::gpu);
  const int result = RUN_ALL_TESTS();
  return contract::end_broker() ? result : 1;
}
