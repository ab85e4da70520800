// The helpers from which the cases of the contract suite are built.
//
// The suite makes some thousand calls to a libcuda.so.1 and writes each answer as a line, "case: CODE". The libraries
// are NVIDIA's driver (whose answers are the golden data), the simulated GPU and our guest library;
// tests/contract/README.md explains how the answers are compared. A value is written only if it depends on the API and
// not on the device.
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
  Initialized,  // cuInit has been called
  InContext,    // the first device's primary context is retained and current
};

struct Group {
  std::string name;
  Start start;
  void (*run)();
};
// Returns the groups in the order of their names.
const std::vector<Group>& groups();

struct AddGroup {
  AddGroup(const char* name, Start start, void (*run)());
};

#define GROUP(name, start)                                                                   \
  static void run_##name();                                                                  \
  static const ::contract::AddGroup add_##name(#name, ::contract::Start::start, run_##name); \
  static void run_##name()

// ---- calls ---------------------------------------------------------------------------------------------------------

// Returns the library's function. Ends the group if the library lacks the function.
void* symbol(const char* name);

template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) {  // NOLINT(google-explicit-constructor): made from a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};
// Records the result of the call, and whether the call submitted a command to a stream.
void told(const char* name, CUresult code, bool submitted);
// Returns the number of commands that this thread has submitted to streams; 0 except on the simulated GPU.
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
// Makes the call with this exported symbol, as in ring/api/driver.def: CU(cuMemAlloc_v2)(&a, 16).
#define CU(name) (::contract::entry<#name, decltype(::name)>())

// ---- answers -------------------------------------------------------------------------------------------------------

void show(const std::string& what, CUresult code);
void show(const std::string& what, long long value);
inline void show_flag(const std::string& what, bool value) { show(what, value ? 1LL : 0LL); }
// Shows the result of `call`, or "crashes" if the call ends with a memory fault. The group continues in both cases.
void show_guarded(const std::string& what, const std::function<CUresult()>& call);
// Shows the result of `call` in a new process with an unused driver, for a call that may break the driver. Shows
// "crashes" if the call crashes or hangs. Only for groups with Start::Loaded.
void show_alone(const std::string& what, const std::function<CUresult()>& call);
// Returns `bytes` of memory before an inaccessible page, so that a driver that writes past the end faults.
char* fenced(std::size_t bytes);
// Runs cases in a forked child of this process.
void in_a_child(const std::function<void()>& cases);

// ---- shared objects ------------------------------------------------------------------------------------------------

constexpr CUdevice device = 0;
// The PTX text for the suite's kernels: empty, store(u64 out, u32 value), bounded (at most 64 threads), exact (32 by 2
// threads) and stop (a trap). The text also defines the global variable `answer` and the constant `fixed`.
extern const char ptx[];

// Returns the path of a file that contains `text`. The file exists until this process ends.
std::string file_of(const char* text);
CUmodule load_module();
CUfunction function_of(CUmodule module, const char* name);
CUcontext current_context();

// Returns the calls that the groups nothing_* leave out, and that the groups changes_* make instead.
std::set<std::string> calls_that_change_the_state();

// Returns a value of an enum that has no enumerator, which a C program can pass.
template <class Enum>
Enum odd(int number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

inline CUdeviceptr address_of(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

// ---- running groups ------------------------------------------------------------------------------------------------

struct Outcome {
  std::vector<Line> lines;
  std::set<std::string> succeeded, failed;  // the calls that the cases made
  std::set<std::string> submitted;          // the calls that submitted a command to a stream
  std::string end;                          // how the process ended if it did not exit normally
};
// Runs a group on the library at `path`. `environment` is set before the library is loaded.
Outcome run_group(const Group& group, const std::string& path,
                  const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace contract
