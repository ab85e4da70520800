#include "host/base/process/child_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace host::broker {
namespace {

std::vector<char*> as_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildSetup::ChildSetup(int first_free) : first_free_(first_free) {
  posix_spawn_file_actions_init(&files_);
  posix_spawnattr_init(&attributes_);
  sigset_t none, by_default;
  sigemptyset(&none);
  sigemptyset(&by_default);
  sigaddset(&by_default, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes_, &none);
  posix_spawnattr_setsigdefault(&attributes_, &by_default);
  posix_spawnattr_setpgroup(&attributes_, 0);
  posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

ChildSetup::~ChildSetup() {
  posix_spawn_file_actions_destroy(&files_);
  posix_spawnattr_destroy(&attributes_);
}

void ChildSetup::pass(int fd, int number) {
  if (fd < 0) return;
  // Duplicate to a number above all targets first: a later dup2 must not close a descriptor that is still to be passed.
  constexpr int above = 32;
  const int moved = moved_.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, above)).get();
  failed_ = failed_ || moved < 0 || posix_spawn_file_actions_adddup2(&files_, moved, number) != 0;
  has_input_ = has_input_ || number == STDIN_FILENO;
}

int ChildSetup::start(pid_t& pid, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment) {
  if (!has_input_)
    failed_ = failed_ || posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0;
  failed_ = failed_ || posix_spawn_file_actions_addclosefrom_np(&files_, first_free_) != 0;
  if (failed_) return EMFILE;
  const std::vector<char*> argv = as_pointers(arguments), envp = as_pointers(environment);
  return posix_spawn(&pid, argv[0], &files_, &attributes_, argv.data(), envp.data());
}

}  // namespace host::broker
