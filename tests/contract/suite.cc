#include "tests/contract/suite.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>

namespace contract {
namespace {

// A group with many children, each of which has a session of its own, takes a minute if the driver starts slowly.
constexpr unsigned patience_seconds = 120;
constexpr unsigned child_patience_seconds = 20;

void* library = nullptr;
int answers_fd = -1;
sigjmp_buf before_call;

std::vector<Group>& all_groups() {
  static std::vector<Group> all;
  return all;
}

// Each line is one write(), so that all lines before a crash are received.
void send_line(const std::string& line) {
  if (write(answers_fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(2);
}

void write_line(const std::string& what, const std::string& answer) {
  static std::map<std::string, int> used;
  const int times = ++used[what];
  send_line(what + (times > 1 ? " (" + std::to_string(times) + ")" : "") + ": " + answer + "\n");
}

// Prefixes of lines that are not answers but name calls that succeeded, failed, or submitted a command to the GPU.
constexpr std::string_view succeeded_mark = "!succeeded ", failed_mark = "!failed ", submitted_mark = "!submitted ";

// Separates answers from the lines with these prefixes.
Outcome outcome_of(const std::string& text) {
  Outcome outcome;
  std::istringstream in(text);
  std::string answers;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(succeeded_mark))
      outcome.succeeded.insert(line.substr(succeeded_mark.size()));
    else if (line.starts_with(failed_mark))
      outcome.failed.insert(line.substr(failed_mark.size()));
    else if (line.starts_with(submitted_mark))
      outcome.submitted.insert(line.substr(submitted_mark.size()));
    else
      answers += line + "\n";
  }
  outcome.lines = parse_lines(answers);
  return outcome;
}

std::string name_of(CUresult code) {
  const char* name = nullptr;
  const auto get = reinterpret_cast<decltype(&::cuGetErrorName)>(symbol("cuGetErrorName"));
  return get(code, &name) == CUDA_SUCCESS ? name : "code " + std::to_string(static_cast<int>(code));
}

[[noreturn]] void run_here(const Group& group, const std::string& path) {
  alarm(patience_seconds);
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    _exit(2);
  }
  CUcontext context = nullptr;
  if (group.start != Start::Loaded && CU(cuInit)(0) != CUDA_SUCCESS) _exit(3);
  if (group.start == Start::InContext &&
      (CU(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS || CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS))
    _exit(4);
  group.run();
  _exit(0);
}

std::string read_all(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
  return text;
}

}  // namespace

const std::vector<Group>& groups() {
  auto& all = all_groups();
  std::sort(all.begin(), all.end(), [](const Group& a, const Group& b) { return a.name < b.name; });
  return all;
}

AddGroup::AddGroup(const char* name, Start start, void (*run)()) { all_groups().push_back({name, start, run}); }

void told(const char* name, CUresult code, bool submitted) {
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard lock(mutex);
  const auto say = [&](std::string_view mark) {
    const std::string line = std::string(mark) + name + "\n";
    if (known.insert(line).second) send_line(line);
  };
  say(code == CUDA_SUCCESS ? succeeded_mark : failed_mark);
  if (submitted) say(submitted_mark);
}

std::uint64_t commands() {
  static const auto count = reinterpret_cast<std::uint64_t (*)()>(dlsym(library, "ivgpu_sim_commands"));
  return count == nullptr ? 0 : count();
}

void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "the library has no %s\n", name);
  _exit(5);
}

void show(const std::string& what, CUresult code) { write_line(what, name_of(code)); }
void show(const std::string& what, long long value) { write_line(what, std::to_string(value)); }

void show_guarded(const std::string& what, const std::function<CUresult()>& call) {
  struct sigaction before {};
  struct sigaction caught {};
  caught.sa_handler = [](int) { siglongjmp(before_call, 1); };
  sigaction(SIGSEGV, &caught, &before);
  if (sigsetjmp(before_call, 1) == 0)
    show(what, call());
  else
    write_line(what, "crashes");
  sigaction(SIGSEGV, &before, nullptr);
}

void show_alone(const std::string& what, const std::function<CUresult()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(child_patience_seconds);
    show_guarded(what, call);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) _exit(8);
  if (WIFSIGNALED(status)) write_line(what, "crashes");
}

char* fenced(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* at = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes > page || at == MAP_FAILED || mprotect(at, page, PROT_READ | PROT_WRITE) != 0) _exit(6);
  return static_cast<char*>(at) + page - bytes;
}

void in_a_child(const std::function<void()>& cases) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(child_patience_seconds);
    cases();
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    write_line("the child's status", std::to_string(status));
}

const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.visible .const .align 4 .u32 fixed = 7;
.visible .entry empty() { ret; }
.visible .entry store(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry exact() .reqntid 32, 2, 1 { ret; }
.visible .entry stop() { trap; }
)";

std::string file_of(const char* text) {
  const int file = memfd_create("contract", 0);
  const auto length = static_cast<ssize_t>(std::strlen(text));
  if (file < 0 || write(file, text, static_cast<std::size_t>(length)) != length) _exit(7);
  return "/proc/self/fd/" + std::to_string(file);
}

CUmodule load_module() {
  CUmodule module = nullptr;
  CU(cuModuleLoadData)(&module, ptx);
  return module;
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  CU(cuModuleGetFunction)(&function, module, name);
  return function;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  CU(cuCtxGetCurrent)(&context);
  return context;
}

Outcome run_group(const Group& group, const std::string& path,
                  const std::vector<std::pair<std::string, std::string>>& environment) {
  int ends[2];
  if (pipe(ends) != 0) return {.lines = {}, .succeeded = {}, .failed = {}, .submitted = {}, .end = "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    answers_fd = ends[1];
    for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
    run_here(group, path);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  Outcome outcome = outcome_of(text);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    outcome.end = "no process";
  else if (WIFSIGNALED(status))
    outcome.end = "signal " + std::to_string(WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0)
    outcome.end = "exit code " + std::to_string(WEXITSTATUS(status));
  return outcome;
}

}  // namespace contract
