// `ivgpu check` executes ivgpu-check, a program of its own, since guests have no other program of ours.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/install.h"

namespace ivgpu {

int check(const CheckOptions& options) {
  const auto program = find_install().check;
  std::vector<std::string> words = {require(program, "the program ivgpu-check").string(), "--runtime-dir",
                                    options.runtime_dir.string()};
  if (!options.root.empty()) words.insert(words.end(), {"--root", options.root.string()});
  if (options.host) words.emplace_back("--host");
  if (options.guest) words.emplace_back("--guest");
  if (options.json) words.emplace_back("--json");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw Error(exit_code::not_executable, program.string() + " cannot be run: " + std::strerror(errno));
}

}  // namespace ivgpu
