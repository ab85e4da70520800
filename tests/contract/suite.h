// What a case of the contract suite is made of.
//
// The suite asks a libcuda.so.1 some thousand questions and notes each answer in a line, "case: CODE". It is asked of
// the real driver (whose answers are the golden data), of the simulated GPU and of our guest library;
// tests/contract/README.md says how the three are held against each other. Values are noted only where they are the
// API's and not the device's.
//
// A group runs in a process of its own: what one leaves behind, or how it ends, does not touch the next.
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

// How much has been done before a group's first case.
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

// The library's function; ends the group when the library lacks it.
void* symbol(const char* name);

template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) {  // NOLINT(google-explicit-constructor): made from a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};
// Tells the suite that a case called `name`, what it returned, and whether it gave the GPU a command.
void told(const char* name, CUresult code, bool submitted);
// How many commands the calling thread has put into streams, where the library says so: the simulated GPU alone.
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
// The call by its exported symbol, as the table writes it: CU(cuMemAlloc_v2)(&a, 16).
#define CU(name) (::contract::entry<#name, decltype(::name)>())

// ---- answers -------------------------------------------------------------------------------------------------------

void show(const std::string& what, CUresult code);
void show(const std::string& what, long long value);
inline void show_flag(const std::string& what, bool value) { show(what, value ? 1LL : 0LL); }
// What `call` returns; "crashes" when it ends with a fault of memory, and the group goes on.
void show_guarded(const std::string& what, const std::function<CUresult()>& call);
// The same in a process of its own that has used no driver before: for a call after which a driver may be in disorder. It
// "crashes" also when it does not return. For groups that start with the library loaded and nothing else.
void show_alone(const std::string& what, const std::function<CUresult()>& call);
// So many bytes that nothing writable follows: whoever writes beyond them does not get as far as this process's stack.
char* fenced(std::size_t bytes);
// Runs cases in a forked child of this process.
void in_a_child(const std::function<void()>& cases);

// ---- what cases share ----------------------------------------------------------------------------------------------

constexpr CUdevice device = 0;
// Kernels empty, store(u64 out, u32 value), bounded (64 threads at most), exact (32 by 2), stop (a trap); `answer`, a
// global, and `fixed`, a constant.
extern const char ptx[];

// A file that holds `text`, by a path that is good as long as this process lives.
std::string file_of(const char* text);
CUmodule load_module();
CUfunction function_of(CUmodule module, const char* name);
CUcontext current_context();

// The calls that the groups nothing_* leave out: the groups changes_* make them.
std::set<std::string> calls_that_change_the_state();

// A number that the enum has no name for, and cuda.h's C compiler would let pass.
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
  std::set<std::string> succeeded, failed;  // what its cases called
  std::set<std::string> submitted;          // of these, what put a command into a stream
  std::string end;                          // how the process ended, when it was not of itself
};
// Runs a group on the library at `path`; `environment` is set before it is loaded.
Outcome run_group(const Group& group, const std::string& path,
                  const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace contract
