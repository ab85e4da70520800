// The exported symbols of libcuda.so.1, all from the table. Each symbol is an Entry, which counts the call, records
// whether the symbol is a per-thread variant, and calls the function that serves the symbol.
//
// An exported name is an ifunc, so the name has cuda.h's type whichever function serves it.
#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "guest/marshal/output.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/abi/missing.h"

namespace guest {
namespace {

enum class Form : std::uint8_t { Plain, PerThread };

// `Symbol`: a type that has the exported name, for the log (IVGPU_LOG=trace).
template <auto function, Form form, class Symbol>
struct Entry;
template <class... P, CUresult (*function)(P...), Form form, class Symbol>
struct Entry<function, form, Symbol> {
  static CUresult call(P... p) {
    Thread& thread = this_thread();
    ++thread.calls;
    if constexpr (form == Form::PerThread) thread.per_thread = true;
    const CUresult missing = cuabi::missing_argument<Symbol>([] { return ready() == CUDA_SUCCESS; }, p...);
    const CUresult result = missing != CUDA_SUCCESS ? missing : function(p...);
    if constexpr (form == Form::PerThread) this_thread().per_thread = false;
    if (output_waiting()) [[unlikely]]
      print_output();
    if (logs(Level::Trace)) [[unlikely]]
      log(Level::Trace, "%s -> %d", Symbol::name, static_cast<int>(result));
    return result;
  }
};

constexpr Form form_of(std::string_view symbol) {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds") ? Form::PerThread : Form::Plain;
}

// The function that serves each symbol. Variants of a symbol refer to these names.
namespace served {
#define CALL(id, fn, ...) constexpr auto fn = &Stub<id>::call;
#define CUSTOM(id, fn, ...) constexpr auto fn = &calls::fn;
#define LOCAL(fn, ...) constexpr auto fn = &calls::fn;
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
}  // namespace served

// Gives the slot back, after all exit handlers of the program. Without this step, the next program would have to find
// out that this process is dead.
__attribute__((destructor)) void leave_at_exit() { finish(); }

}  // namespace
}  // namespace guest

// The loader calls resolvers while it relocates, before a sanitizer is ready, so resolvers are not instrumented.
#define EXPORT(fn, target)                                                                                         \
  namespace {                                                                                                      \
  struct Symbol_##fn {                                                                                             \
    static constexpr const char* name = #fn;                                                                       \
  };                                                                                                               \
  }                                                                                                                \
  extern "C" __attribute__((no_sanitize("address", "undefined", "thread"))) decltype(&::fn) ivgpu_resolve_##fn() { \
    return &guest::Entry<guest::served::target, guest::form_of(#fn), Symbol_##fn>::call;                           \
  }                                                                                                                \
  extern "C" __attribute__((visibility("default"))) decltype(::fn) fn __attribute__((ifunc("ivgpu_resolve_" #fn)));
#define CALL(id, fn, ...) EXPORT(fn, fn)
#define CUSTOM(id, fn, ...) EXPORT(fn, fn)
#define LOCAL(fn, ...) EXPORT(fn, fn)
#define VARIANT(fn, since, of) EXPORT(fn, of)
#define ABSENT(...)
#include "ring/api/driver.def"
