// tools/guest-image prints one path per line: the initramfs, the kernel, then modules.
#include "tools/ivgpu/vm/guest.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/vm/cpio.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

constexpr int no_modules = 4;  // exit code of guest-image

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(exit_code::missing, "cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

// Quotes any text for the shell.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

GuestImage make_guest_image(const Install& install, const GuestParts& parts) {
  if (install.cache.empty())
    throw Error(exit_code::missing, "user " + std::to_string(geteuid()) +
                                        " has no home folder to keep the guest's image in: set XDG_CACHE_HOME to a "
                                        "folder that no other user may write to");
  Command command{.argv = {require(install.guest_image, "the script guest-image").string(), "--output",
                           install.cache.string(), "--guest-lib", install.guest_lib.string()}};
  if (fs::exists(install.programs)) command.argv.insert(command.argv.end(), {"--programs", install.programs.string()});
  for (const fs::path& dir : parts.program_dirs)
    command.argv.insert(command.argv.end(), {"--program-dir", fs::absolute(dir).string()});
  if (fs::exists(install.check)) command.argv.insert(command.argv.end(), {"--check", install.check.string()});
  if (!parts.kernel.empty()) command.argv.insert(command.argv.end(), {"--kernel", fs::absolute(parts.kernel).string()});
  for (const std::string& way : parts.ways) command.argv.insert(command.argv.end(), {"--way", way});

  FdPair output = make_pipe_to_us();
  command.out = output.theirs.get();
  Child script(command);
  output.theirs.reset();
  const std::string text = read_all(output.ours.get());
  const int ended = script.wait();
  if (ended == exit_code::missing || ended == no_modules)
    throw Error(exit_code::missing, "");  // guest-image printed the reason
  if (ended != 0) throw Error(exit_code::missing, "the guest's image could not be made");
  std::istringstream lines(text);
  GuestImage image;
  for (fs::path* path : {&image.initramfs, &image.kernel})
    if (std::string line; std::getline(lines, line)) *path = line;
  if (image.kernel.empty()) throw Error(exit_code::missing, "guest-image did not name its results");
  for (std::string line; std::getline(lines, line);) image.modules.emplace_back(line);
  return image;
}

std::string job_settings(const GuestJob& job) {
  std::string text = std::string("interactive=") + (job.interactive ? "1" : "0") + "\nkeep=" + (job.keep ? "1" : "0") +
                     "\ncommand=" + shell_quoted(job.command) + "\n";
  if (!job.awaited.empty()) text += "awaited=" + shell_quoted(job.awaited) + "\n";
  for (const std::string& assignment : job.environment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(exit_code::usage, "--env takes NAME=VALUE, not " + assignment);
    text += "export " + assignment.substr(0, equals) + "=" + shell_quoted(assignment.substr(equals + 1)) + "\n";
  }
  return text;
}

void write_initrd(const fs::path& path, const GuestImage& image, const std::string& settings) {
  std::vector<CpioFile> files = {{.path = "ivgpu/job", .content = settings}};
  if (!image.modules.empty()) files.push_back({.path = "ivgpu/modules", .content = "", .mode = 040755});
  std::string names;
  for (const fs::path& module : image.modules) {
    files.push_back({.path = "ivgpu/modules/" + module.filename().string(), .content = content_of(module)});
    names += (names.empty() ? "" : " ") + module.stem().string();
  }
  if (!names.empty()) files.front().content += "modules=" + shell_quoted(names) + "\n";

  fs::copy_file(image.initramfs, path);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  for (auto size = fs::file_size(path); size % 4 != 0; ++size) out.put('\0');
  write_cpio(out, files);
  if (!out.flush()) throw Error(exit_code::missing, "cannot write " + path.string());
}

}  // namespace ivgpu
