// The image's script prints the two paths, the initramfs first.
#include "tools/ivgpu/vm/guest.h"

#include <unistd.h>

#include <fstream>

#include "tools/ivgpu/child.h"
#include "tools/ivgpu/error.h"
#include "tools/ivgpu/vm/cpio.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

// 'like this', with any contents.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

GuestImage make_guest_image(const Install& install, const std::vector<fs::path>& program_dirs, bool need_kernel) {
  Command command{.argv = {require(install.guest_image, "the script guest-image").string(), "--output",
                           install.cache.string(), "--guest-lib", install.guest_lib.string()}};
  if (fs::exists(install.programs)) command.argv.insert(command.argv.end(), {"--programs", install.programs.string()});
  for (const fs::path& dir : program_dirs)
    command.argv.insert(command.argv.end(), {"--program-dir", fs::absolute(dir).string()});
  if (!need_kernel) command.argv.push_back("--no-kernel");

  FdPair output = make_pipe_to_us();
  command.out = output.theirs.get();
  Child script(command);
  output.theirs.reset();
  const std::string text = read_all(output.ours.get());
  const int ended = script.wait();
  if (ended == exit_code::missing) throw Error(ended, "");  // it has said why
  if (ended != 0) throw Error(exit_code::missing, "the guest's image could not be made");
  const std::size_t line = text.find('\n');
  if (line == std::string::npos) throw Error(exit_code::missing, "guest-image did not name its results");
  const std::size_t second = text.find('\n', line + 1);
  return {.kernel = second == std::string::npos ? "" : text.substr(line + 1, second - line - 1),
          .initramfs = text.substr(0, line)};
}

std::string job_settings(const GuestJob& job) {
  std::string text = std::string("interactive=") + (job.interactive ? "1" : "0") + "\nkeep=" + (job.keep ? "1" : "0") +
                     "\ncommand=" + shell_quoted(job.command) + "\n";
  for (const std::string& assignment : job.environment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(exit_code::usage, "--env takes NAME=VALUE, not " + assignment);
    text += "export " + assignment.substr(0, equals) + "=" + shell_quoted(assignment.substr(equals + 1)) + "\n";
  }
  return text;
}

void write_initrd(const fs::path& path, const GuestImage& image, const std::string& settings) {
  fs::copy_file(image.initramfs, path);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  for (auto size = fs::file_size(path); size % 4 != 0; ++size) out.put('\0');
  write_cpio(out, {{.path = "ivgpu/job", .content = settings}});
  if (!out.flush()) throw Error(exit_code::missing, "cannot write " + path.string());
}

}  // namespace ivgpu
