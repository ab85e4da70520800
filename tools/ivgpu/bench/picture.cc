#include "tools/ivgpu/bench/picture.h"

#include <unistd.h>

#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {

Picture::Picture(const Install& install, const std::filesystem::path& path) : file_(path) {
  if (!file_) return;
  input_ = make_pipe_from_us();
  try {
    script_.emplace(Command{.argv = {"python3", "-I", require(install.plot, "the script that draws").string()},
                            .in = input_.theirs.get(),
                            .out = file_.descriptor(),
                            .own_group = true});
  } catch (const Error& failed) {
    throw Error(exit_code::missing, failed.what());
  }
  input_.theirs.reset();
}

void Picture::draw(const std::string& json) {
  if (!script_) return;
  for (std::size_t done = 0; done < json.size();) {
    const ssize_t written = write(input_.ours.get(), json.data() + done, json.size() - done);
    if (written <= 0) break;  // the script has ended; its exit code has the reason
    done += static_cast<std::size_t>(written);
  }
  input_.ours.reset();
  if (script_->wait() != 0) throw Error(exit_code::missing, "the picture was not drawn");
  file_.finish();
}

}  // namespace ivgpu::bench
