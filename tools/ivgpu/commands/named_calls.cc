#include "tools/ivgpu/commands/named_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <sstream>
#include <string_view>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* loader = "/lib64/ld-linux-x86-64.so.2";

// A file mapped for reading: a library may have hundreds of megabytes, too many for a copy.
class Mapped {
 public:
  explicit Mapped(const fs::path& path) {
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::error_code failed;
    size_ = file ? static_cast<std::size_t>(fs::file_size(path, failed)) : 0;
    if (!file || failed || size_ == 0) throw Error(exit_code::not_found, path.string() + " cannot be read");
    at_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at_ == MAP_FAILED) throw Error(exit_code::not_found, path.string() + " cannot be read");
  }
  ~Mapped() { munmap(at_, size_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::string_view text() const { return {static_cast<const char*>(at_), size_}; }

 private:
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The loader's list of libraries; "" if the loader does not handle the file, such as a static executable.
std::string asked_of_loader(const Install& install, const fs::path& file) {
  FdPair output = make_pipe_to_us();
  const Fd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  Child child({.argv = {loader, fs::absolute(file).string()},
               .environment = {{"LD_TRACE_LOADED_OBJECTS",
                                "1"},  // makes the loader list the libraries without running the program, like ldd
                               {"LD_LIBRARY_PATH", prepend_path("LD_LIBRARY_PATH", install.guest_lib)}},
               .out = output.theirs.get(),
               .err = nothing.get()});
  output.theirs.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(output.ours.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  child.wait();
  return text;
}

}  // namespace

// The loader prints "NAME => PATH (ADDRESS)", "NAME => not found" or "PATH (ADDRESS)".
Libraries libraries_of(const Install& install, const fs::path& file) {
  Libraries all;
  std::istringstream lines(asked_of_loader(install, file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, path;
    if (!(words >> name >> arrow >> path) || arrow != "=>" || name.starts_with("libcuda.so")) continue;
    if (path.starts_with("/"))
      all.found.emplace_back(path);
    else
      all.missing.push_back(name);
  }
  return all;
}

void each_name(const fs::path& file, const std::function<void(const std::string& name)>& each) {
  const Mapped mapped(file);
  const std::string_view all = mapped.text();
  if (!all.starts_with("\x7f"
                       "ELF"))
    throw Error(exit_code::not_executable, file.string() + " is no ELF file, so it has no driver calls to look for");
  for (std::size_t at = all.find("cu"); at != std::string_view::npos; at = all.find("cu", at + 1)) {
    if (at > 0 && is_name(all[at - 1])) continue;
    std::size_t end = at;
    while (end < all.size() && is_name(all[end])) ++end;
    each(std::string(all.substr(at, end - at)));
    at = end;
  }
}

}  // namespace ivgpu
