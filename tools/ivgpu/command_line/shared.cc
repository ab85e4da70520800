// Helpers of several commands: the words after the options, and common options. See command_line.h.
#include "tools/ivgpu/command_line/command_line.h"

namespace ivgpu {

std::vector<std::string> program_of(const CLI::App& command, const Words& words) {
  std::vector<std::string> program = command.remaining();
  if (!program.empty() && program.front().starts_with("-"))
    throw Error(exit_code::usage, command.get_name() + " has no option " + program.front());
  if (!program.empty() && words.cut) program.emplace_back("--");
  program.insert(program.end(), words.after.begin(), words.after.end());
  return program;
}

std::vector<std::string> some_program_of(const CLI::App& command, const Words& words) {
  std::vector<std::string> program = program_of(command, words);
  if (program.empty()) throw Error(exit_code::usage, command.get_name() + " needs a PROGRAM");
  return program;
}

CLI::Validator unnamed(CLI::Validator validator) { return validator.description(""); }

CLI::Option& file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what) {
  return *command.add_option(name, into, what)->type_name("FILE");
}

CLI::Option& existing_file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what) {
  return *file_option(command, name, into, what).check(unnamed(CLI::ExistingFile));
}

void add_runtime_dir(CLI::App& command, std::filesystem::path& into) {
  command.add_option("--runtime-dir", into, "The runtime_dir of the broker's configuration")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_broker_options(CLI::App& command, BrokerOptions& broker) {
  command
      .add_option("--gpu", broker.gpu,
                  "auto (a real one where there is one), sim (the simulated GPU), or the PATH of a libcuda.so.1")
      ->type_name("GPU")
      ->capture_default_str();
  command.add_option("--region-size", broker.region_size, "The shared memory, a power of two, as 1G or 512M")
      ->type_name("SIZE")
      ->capture_default_str();
  existing_file_option(command, "--extra-config", broker.extra_config,
                       "TOML to append to the private broker's configuration");
  command.add_flag("-v,--verbose", broker.verbose, "Show the private broker's log");
}

void add_program_broker_options(CLI::App& command, BrokerOptions& broker) {
  broker.region_size.clear();
  add_broker_options(command, broker);
}

}  // namespace ivgpu
