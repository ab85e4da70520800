// `ivgpu end` sends one line to the broker's control socket and reads one line back.
#include <algorithm>
#include <string>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/control.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {
namespace {

constexpr auto patience = std::chrono::seconds(5);

// Rejects a target that is not one line of printable characters without blanks.
void check(const std::string& target) {
  const auto strange = [](char c) { return c <= ' ' || c > '~'; };
  if (target.empty() || target.size() > 100 || std::any_of(target.begin(), target.end(), strange))
    throw Error(exit_code::usage, "end needs a VM, or a VM and a session as in VM/3");
}

}  // namespace

int end_sessions(const EndOptions& options) {
  check(options.target);
  std::string answer;
  ask_broker(options.runtime_dir, "end " + options.target, patience, [&](const std::string& line) {
    if (answer.empty()) answer = line;
  });
  if (answer.empty()) throw Error(exit_code::missing, "the broker did not answer");
  const std::string vm = options.target.substr(0, options.target.find('/'));
  if (answer.starts_with("error ")) throw Error(exit_code::refused, answer.substr(6));
  if (!answer.starts_with("ok ")) throw Error(exit_code::missing, "what answered is no broker of this version");
  const std::string count = answer.substr(3);
  print("VM " + vm + ": " + count + (count == "1" ? " session ends\n" : " sessions end\n"));
  return 0;
}

}  // namespace ivgpu
