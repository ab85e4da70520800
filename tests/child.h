// Child processes that run a function of the test. A test needs a child if the function permanently drops a privilege,
// a user or a system call, or if the tested code must see another process.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>

// Waits for the end of a child. Returns its exit code, or minus the number of the signal that ended it.
inline int wait_for_child(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    ADD_FAILURE() << "there is no child";
    return -SIGKILL;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Runs `code` in a child, which exits with the result of `code`. Returns the same as wait_for_child().
inline int run_in_child(const std::function<int()>& code) {
  const pid_t child = fork();
  if (child == 0) _exit(code());
  return wait_for_child(child);
}

struct ChildOutput {
  int code = 0;        // the result of run_in_child()
  std::string errors;  // stderr
};

// Same as run_in_child(); also collects the output of the child and its descendants on standard error.
inline ChildOutput output_of_child(const std::function<int()>& code) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.code = -SIGKILL, .errors = "there is no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    for (const int end : ends) close(end);
    _exit(code());
  }
  close(ends[1]);
  ChildOutput output;
  char bytes[4096];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;)
    output.errors.append(bytes, static_cast<std::size_t>(n));
  close(ends[0]);
  output.code = wait_for_child(child);
  return output;
}

// A child that runs `code`, reports the result to the test, and keeps its resources until end().
template <class Answer>
class AnsweringChild {
 public:
  explicit AnsweringChild(const std::function<Answer()>& code) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid = fork();
    if (pid == 0) {
      const Answer result = code();
      if (write(ends[1], &result, sizeof result) == sizeof result) pause();
      _exit(1);
    }
    close(ends[1]);
    Answer result{};
    if (read(ends[0], &result, sizeof result) == sizeof result) answer = result;
    close(ends[0]);
  }
  ~AnsweringChild() { end(); }
  AnsweringChild(const AnsweringChild&) = delete;
  AnsweringChild& operator=(const AnsweringChild&) = delete;

  void end() {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }

  pid_t pid = -1;
  std::optional<Answer> answer;  // none: the child exited without an answer
};
