// The options of the commands that add VMs to a broker and remove them: add and remove. See command_line.h.
#include "tools/ivgpu/command_line/command_line.h"

namespace ivgpu {
namespace {

constexpr const char* codes =
    "Exit codes: 0 done; 1 the broker refuses, or the VM is not one of these; 2 the command line makes no sense;\n"
    "3 no broker answers, or the VM's file cannot be written.";

}  // namespace

CLI::App& add_add(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<AddOptions>();
  CLI::App& command = *app.add_subcommand("add", "Add a VM to a broker that runs, until it is removed");
  add_runtime_dir(command, options->runtime_dir);
  command.add_option("NAME", options->vm, "Its name; its socket is NAME.sock in that folder")->required();
  command.add_option("--set", options->lines, "A line of its table, as 'slots = 4'; may be repeated")
      ->type_name("LINE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--owner", options->owner, "Whom it is for; one that is there for the same begins anew")
      ->type_name("TEXT");
  command.footer("Its table is written to vms.d/NAME.toml in that folder. What the broker refuses is not kept.\n" +
                 std::string(codes));
  command.callback([&chosen, options] { chosen = [options](const Words&) { return add_vm_file(*options); }; });
  return command;
}

CLI::App& add_remove(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<RemoveOptions>();
  CLI::App& command = *app.add_subcommand("remove", "Remove a VM that `ivgpu add` has added");
  add_runtime_dir(command, options->runtime_dir);
  command.add_option("NAME", options->vm, "Its name")->required();
  command.add_option("--owner", options->owner, "Only if it is for this one, and in silence if not")->type_name("TEXT");
  command.footer("Its sessions end, and it waits until its memory has gone.\n" + std::string(codes));
  command.callback([&chosen, options] { chosen = [options](const Words&) { return remove_vm_file(*options); }; });
  return command;
}

}  // namespace ivgpu
