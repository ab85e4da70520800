// The parts from which the cases of the contract suite are made.
//
// The suite asks a libcuda.so.1 some thousand questions and notes each answer as a line, "case: CODE". It asks the real
// driver (whose answers are the golden data), the simulated GPU and our guest library; tests/contract/README.md says
// how the three are compared. A value is noted only if it is the API's and not the device's.
//
// Each group runs in a process of its own, so neither its state nor its end affects the next group.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ring/api/cuda.h"
#include "tests/contract/answers.h"

namespace contract {

// The state of the process before a group's first case.
enum class Start : std::uint8_t {
  Loaded,       // the library is loaded
  Initialized,  // cuInit
  InContext,    // the first device's primary context is retained and current
};

struct Group {
  std::string name;
  Start start;
  void (*run)();
};
// In the order of their names.
const std::vector<Group>& groups();

struct AddGroup {
  AddGroup(const char* name, Start start, void (*run)());
};

#define GROUP(name, start)                                                                   \
  static void run_##name();                                                                  \
  static const ::contract::AddGroup add_##name(#name, ::contract::Start::start, run_##name); \
  static void run_##name()

// ---- calls ---------------------------------------------------------------------------------------------------------

// The library's function; ends the group if the library lacks it.
void* symbol(const char* name);

template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) {  // NOLINT(google-explicit-constructor): made from a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};
// Records the call's result, and whether it put a command into a stream.
void told(const char* name, CUresult code, bool submitted);
// The number of commands that this thread has put into streams; 0 except on the simulated GPU.
std::uint64_t commands();

template <Name name, class F>
struct Entry;
template <Name name, class... P>
struct Entry<name, CUresult(P...)> {
  CUresult (*function)(P...);
  CUresult operator()(P... arguments) const {
    const std::uint64_t before = commands();
    const CUresult code = function(arguments...);
    told(name.text, code, commands() != before);
    return code;
  }
};

template <Name name, class F>
Entry<name, F> entry() {
  return {reinterpret_cast<F*>(symbol(name.text))};
}
// The call by its exported symbol, as in the table: CU(cuMemAlloc_v2)(&a, 16).
#define CU(name) (::contract::entry<#name, decltype(::name)>())

// ---- answers -------------------------------------------------------------------------------------------------------

void show(const std::string& what, CUresult code);
void show(const std::string& what, long long value);
inline void show_flag(const std::string& what, bool value) { show(what, value ? 1LL : 0LL); }
// Shows the result of `call`, or "crashes" if it ends with a memory fault. The group goes on.
void show_guarded(const std::string& what, const std::function<CUresult()>& call);
// The same in a new process with an unused driver, for a call that may break the driver. Also shows "crashes" if the
// call hangs. Only for groups with Start::Loaded.
void show_alone(const std::string& what, const std::function<CUresult()>& call);
// `bytes` of memory before an inaccessible page, so that a driver that writes past the end faults.
char* fenced(std::size_t bytes);
// Runs cases in a forked child of this process.
void in_a_child(const std::function<void()>& cases);

// ---- what cases share ----------------------------------------------------------------------------------------------

constexpr CUdevice device = 0;
// Kernels empty, store(u64 out, u32 value), bounded (64 threads at most), exact (32 by 2), stop (a trap); `answer`, a
// global, and `fixed`, a constant.
extern const char ptx[];

// The path of a file that holds `text`. The file exists as long as this process lives.
std::string file_of(const char* text);
CUmodule load_module();
CUfunction function_of(CUmodule module, const char* name);
CUcontext current_context();

// The calls that the groups nothing_* leave out. The groups changes_* make them instead.
std::set<std::string> calls_that_change_the_state();

// An enum's value that has no name, which a C program can pass.
template <class Enum>
Enum odd(int number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

inline CUdeviceptr address_of(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

// ---- running -------------------------------------------------------------------------------------------------------

struct Outcome {
  std::vector<Line> lines;
  std::set<std::string> succeeded, failed;  // the calls that its cases made
  std::set<std::string> submitted;          // those of them that put a command into a stream
  std::string end;                          // how the process ended, if not by a normal exit
};
// Runs a group on the library at `path`; `environment` is set before it is loaded.
Outcome run_group(const Group& group, const std::string& path,
                  const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace contract
