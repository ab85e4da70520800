// `ivgpu` runs CUDA programs through the project on this machine. main() parses the command line and turns errors into
// exit codes. The commands lie in commands/, their options in command_line/.
#include <algorithm>
#include <cstdio>

#include "ring/layout/process_start.h"
#include "tools/ivgpu/command_line/command_line.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/support/user_signals.h"

namespace {

using namespace ivgpu;

// Adds the words after "--" to the usage line, since CLI11 does not know the words that prefix_command() leaves.
class Formatter : public CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    const std::size_t end = usage.find_last_not_of('\n') + 1;
    const char* words = !app->get_prefix_command()   ? ""
                        : app->get_name() == "vm"    ? " [-- COMMAND...]"
                        : app->get_name() == "trace" ? " [-- PROGRAM [ARGUMENTS...]]"
                                                     : " PROGRAM [ARGUMENTS...]";
    return usage.substr(0, end) + words + usage.substr(end);
  }
};

// A parse error as one sentence in the form of our other errors.
std::string sentence_of(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const CLI::App& command = commands.empty() ? app : *commands.front();
  const std::string name = commands.empty() ? "ivgpu" : "ivgpu " + command.get_name();
  const auto rest = command.remaining();
  std::string what = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !rest.empty())
    what = command.get_name() + (rest.front().starts_with("-") ? " has no option " : " takes no ") + rest.front();
  return what.substr(0, what.find('\n')) + "; see " + name + " --help";
}

// Names a wrong command, since CLI11 would report only that a command is missing.
void check_command(const CLI::App& app, const Words& words) {
  const std::string first = words.before.empty() ? "" : words.before.front();
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (first.empty()) throw Error(exit_code::usage, "a command is missing; see ivgpu --help");
  for (const char* option : {"-h", "--help", "--version"})
    if (first == option) return;
  if (std::none_of(commands.begin(), commands.end(), is_first))
    throw Error(exit_code::usage, "there is no " + std::string(first.starts_with("-") ? "option " : "command ") +
                                      first + "; see ivgpu --help");
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"ivgpu runs CUDA programs on a GPU that several virtual machines share.", "ivgpu"};
  app.require_subcommand(1)->footer(exit_codes);
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", "ivgpu " IVGPU_VERSION, "Print the version and exit");
  const Words words(argc, argv);
  Chosen chosen;
  add_run(app, chosen).footer(exit_codes);
  add_sim(app, chosen).footer(exit_codes);
  add_vm(app, chosen);
  add_status(app, chosen);
  add_top(app, chosen);
  add_trace(app, chosen);
  add_end(app, chosen);
  add_reload(app, chosen);
  add_add(app, chosen);
  add_remove(app, chosen);
  add_bench(app, chosen);
  add_check(app, chosen);
  add_coverage(app, chosen);
  check_command(app, words);
  try {
    app.parse(std::vector<std::string>(words.before.rbegin(),
                                       words.before.rend()));  // CLI11 wants the words in reverse order
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw Error(exit_code::usage, sentence_of(app, error));
    app.exit(error);  // prints the help or the version
    flush(stdout);
    return 0;
  }
  return chosen(words);
}

}  // namespace

int main(int argc, char** argv) {
  note_user_signals();
  ring::start_process();
  try {
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    if (*error.what() != '\0') std::fprintf(stderr, "ivgpu: %s\n", error.what());
    return error.code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ivgpu: %s\n", error.what());
    return exit_code::missing;
  }
}
