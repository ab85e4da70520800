// `ivgpu reload` has the broker read its configuration again and prints the changes as the broker makes them.
#include <cstdio>
#include <string>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/control.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {
namespace {

class Lines {
 public:
  void take(const std::string& line) {
    if (line.starts_with("info "))
      print(line.substr(5) + "\n");
    else if (line.starts_with("error "))
      fail(line.substr(6));
    else if (line == "done")
      done_ = true;
    else
      throw Error(exit_code::missing, "what answered is no broker of this version");
  }
  int code() const {
    if (!done_) throw Error(exit_code::missing, "the broker has ended before it was done");
    return failed_ ? exit_code::refused : 0;
  }

 private:
  void fail(const std::string& sentence) {
    std::fprintf(stderr, "ivgpu: %s\n", sentence.c_str());
    failed_ = true;
  }
  bool failed_ = false, done_ = false;
};

}  // namespace

int reload(const ReloadOptions& options) {
  Lines lines;
  ask_broker(options.runtime_dir, "reload", reload_patience, [&](const std::string& line) { lines.take(line); });
  return lines.code();
}

}  // namespace ivgpu
