// The contract: every group of cases on every backend, held against what the real driver answered.
//
//   contract_test --gpu auto --record FOLDER    also writes what each backend answered to FOLDER/<backend>.txt
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

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

// What `backend` may answer otherwise. Loopback passes on what the simulated GPU behind it answers.
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

// A question: one group of cases, and whom it is put to.
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

class Contract : public testing::TestWithParam<Asked> {};

TEST_P(Contract, AnswersAsTheRealDriver) {
  const auto& [backend, group] = GetParam();
  const Backend::Library library = backend->library();
  ASSERT_TRUE(library.error.empty()) << library.error;
  const Outcome outcome = run_group(group, library.path, library.environment);
  record(*backend, group.name, outcome.lines);
  EXPECT_EQ(outcome.end, "") << "after " << (outcome.lines.empty() ? "no case" : outcome.lines.back().name);
  const auto said = golden().find(group.name);
  ASSERT_TRUE(said != golden().end()) << "no golden data of " << group.name;
  std::vector<std::string> complaints;
  const std::vector<Expectation> expectations = expectations_of(*backend, complaints);
  for (const std::string& c : compare(group.name, outcome.lines, said->second, expectations)) ADD_FAILURE() << c;
}

INSTANTIATE_TEST_SUITE_P(Simulated, Contract, testing::ValuesIn(all_of(simulated)), group_name);
INSTANTIATE_TEST_SUITE_P(Loopback, Contract, testing::ValuesIn(all_of(loopback)), group_name);
INSTANTIATE_TEST_SUITE_P(Real, Contract,
                         testing::ValuesIn(real_library().empty() ? std::vector<Asked>{} : all_of(real)), group_name);

TEST(Loopback, RefusesWrongHandles) {
  const Backend::Library library = loopback.library();
  ASSERT_TRUE(library.error.empty()) << library.error;
  const Outcome outcome = run_group(wrong_handles, library.path, library.environment);
  EXPECT_EQ(outcome.end, "");
  EXPECT_GT(outcome.lines.size(), 100u);
  for (const Line& line : outcome.lines) {
    const bool context = line.name.find(" context, ") != std::string::npos;
    EXPECT_EQ(line.answer, context ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR_INVALID_HANDLE") << line.name;
  }
}

// The table's served calls.
std::set<std::string> served() {
  return {
#define CALL(id, fn, ...) #fn,
#define CUSTOM(id, fn, ...) #fn,
#define LOCAL(fn, ...) #fn,
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#undef CALL
#undef CUSTOM
#undef LOCAL
#undef VARIANT
#undef ABSENT
  };
}

TEST(Table, EachServedCallHasACase) {
  for (const std::string& name : served())
    EXPECT_TRUE(named_calls().contains(name)) << name << " is served, but no case below tests/contract/ calls it";
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
    } else {
      std::cerr << "usage: contract_test [--gpu auto|sim|LIBRARY] [--record FOLDER] [GoogleTest's options]\n";
      return 2;
    }
  }
  contract::set_gpu(contract::gpu);
  const int result = RUN_ALL_TESTS();
  contract::end_broker();
  return result;
}
