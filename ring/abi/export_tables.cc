// A table is an array of words: first the table's size in bytes, then functions. Not all callers check the size, so
// each table has the size of the real driver's table (driver 580, CUDA 13.0). A slot with an unknown meaning has a
// function that logs the slot's number once and returns NOT_SUPPORTED. A slot is NULL only if the real driver's slot is
// known to be NULL.
#include "ring/abi/export_tables.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "ring/abi/backend.h"
#include "ring/abi/context_storage.h"
#include "ring/abi/integrity.h"

namespace cuabi {
namespace {

constinit std::atomic<const Backend*> installed{nullptr};

enum class Table { Cudart, ToolsTls, Hooks, ContextStorage, ContextChecks, Integrity, Context, Module, Blas };

struct Identity {
  const char* name;      // the name under which people search for the table
  unsigned char id[16];  // the bytes of the UUID in memory order
  std::size_t words;     // number of words, including the size
};

constexpr Identity identities[] = {
    {"CUDART_INTERFACE",
     {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
     13},
    {"TOOLS_TLS", {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, 3},
    {"TOOLS_RUNTIME_CALLBACK_HOOKS",
     {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
     7},
    {"CONTEXT_LOCAL_STORAGE",
     {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
     4},
    {"CONTEXT_CHECKS",
     {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e},
     15},
    {"INTEGRITY_CHECK",
     {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
     3},
    {"2131", {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2}, 93},
    {"6e16", {0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e}, 99},
    {"1734", {0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca}, 17},
};

constexpr const Identity& identity(Table table) { return identities[static_cast<std::size_t>(table)]; }

union Word {
  std::size_t size;
  void (*function)();
};

const Word* words(Table table);

void log_called(Table table, std::size_t slot, const char* state) {
  const Backend* b = backend();
  if (b == nullptr || b->log == nullptr) return;
  char line[128];
  std::snprintf(line, sizeof line, "export table %s: slot %zu was called%s", identity(table).name, slot, state);
  b->log(line);
}

// Logs the first call of a slot, for `ivgpu coverage`. A later call only reads a word that no thread writes any more.
template <Table table, std::size_t slot>
void note_call(const char* state) {
  static constinit std::atomic<bool> logged{false};
  if (logged.load(std::memory_order_relaxed) || logged.exchange(true, std::memory_order_relaxed)) return;
  log_called(table, slot, state);
}

template <Table table, std::size_t slot>
CUresult unserved() {
  note_call<table, slot>(", which is not served: CUDA_ERROR_NOT_SUPPORTED");
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <Table table, std::size_t slot, auto function>
struct Served;
template <Table table, std::size_t slot, class R, class... A, R (*function)(A...)>
struct Served<table, slot, function> {
  static R call(A... arguments) {
    note_call<table, slot>("");
    return function(arguments...);
  }
};

CUresult ready() {
  const Backend* b = backend();
  return b == nullptr ? CUDA_ERROR_NOT_INITIALIZED : b->ready();
}

// ---- CUDART_INTERFACE -------------------------------------------------------------------------------------------

CUresult load_wrapper(CUmodule* module, const void* wrapper) {
  const CUresult error = ready();
  return error != CUDA_SUCCESS ? error : backend()->load_module(module, wrapper);
}

CUresult primary_context(CUcontext* context, CUdevice device) {
  const CUresult error = ready();
  return error != CUDA_SUCCESS ? error : backend()->primary_context(context, device);
}

CUresult load_wrapper_ext(CUmodule* module, const void* wrapper, void*, void*, unsigned) {
  return load_wrapper(module, wrapper);
}

void module_goes(std::uintptr_t) {}

CUresult load_container_ext(const void* container, CUmodule* module, void*, void*, unsigned) {
  return load_wrapper(module, container);
}

CUresult load_compilers() { return CUDA_SUCCESS; }

// ---- TOOLS_TLS, TOOLS_RUNTIME_CALLBACK_HOOKS -----------------------------------------------------------------------

CUresult thread_context(CUcontext* context) {
  const CUresult error = ready();
  if (error != CUDA_SUCCESS) return error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = backend()->current_context();
  return CUDA_SUCCESS;
}

// Flags that a profiler would set, with an entry for each callback id. While all flags are zero, the runtime reads them
// and calls nothing. The runtime may have more ids than the number returned here, so the arrays are longer than that
// number.
constexpr std::size_t call_flags_reported = 1024, other_flags_reported = 14;
constinit std::uint32_t call_flags[4096] = {};
constinit std::uint32_t other_flags[64] = {};

void hook_event(std::uint32_t, void*) {}
void hook_unused(void*, void*) {}

void call_flag_array(void** flags, std::size_t* count) {
  *flags = call_flags;
  *count = call_flags_reported;
}

void other_flag_array(void** flags, std::size_t* count) {
  *flags = other_flags;
  *count = other_flags_reported;
}

// ---- CONTEXT_CHECKS, INTEGRITY_CHECK --------------------------------------------------------------------------------

CUresult context_check(CUcontext, std::uint32_t* verdict, void**) {
  if (verdict != nullptr) *verdict = 0;
  return CUDA_SUCCESS;
}

std::uint32_t global_check() { return 0; }

CUresult integrity_check(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* digest);

IntegrityFacts facts_now(std::uint32_t version, std::uint64_t unix_seconds) {
  return {.driver_version = static_cast<std::uint32_t>(backend()->driver_version()),
          .version = version,
          .process = static_cast<std::uint32_t>(getpid()),
          .thread = static_cast<std::uint32_t>(pthread_self()),
          .cudart_table = reinterpret_cast<std::uintptr_t>(words(Table::Cudart)),
          .integrity_table = reinterpret_cast<std::uintptr_t>(words(Table::Integrity)),
          .integrity_function = reinterpret_cast<std::uintptr_t>(&integrity_check),
          .unix_seconds = unix_seconds};
}

CUresult integrity_check(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* digest) {
  note_call<Table::Integrity, 1>("");
  CUresult error = ready();
  if (error != CUDA_SUCCESS) return error;
  if (digest == nullptr) return CUDA_ERROR_INVALID_VALUE;
  try {
    std::vector<DeviceIdentity> devices(static_cast<std::size_t>(backend()->device_count()));
    for (std::size_t i = 0; i < devices.size() && error == CUDA_SUCCESS; ++i)
      error = backend()->device_identity(static_cast<int>(i), &devices[i]);
    if (error != CUDA_SUCCESS) return error;
    const Digest result = integrity_digest(facts_now(version, unix_seconds), devices);
    std::memcpy(digest, result.data(), result.size());
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// ---- 2131 (contexts and streams), 6e16 (modules) --------------------------------------------------------------------

CUresult context_id(CUcontext context, std::uint64_t* id) {
  const CUresult error = ready();
  if (error != CUDA_SUCCESS) return error;
  return id == nullptr ? CUDA_ERROR_INVALID_VALUE : backend()->context_id(context, id);
}

// Returns the object that represents a stream. The object is the stream's id, which is unique and never zero.
CUresult stream_object(CUcontext context, CUstream stream, void** object) {
  CUresult error = ready();
  if (error != CUDA_SUCCESS) return error;
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t id = 0;
  error = backend()->stream_id(context, stream, &id);
  if (error == CUDA_SUCCESS) *object = reinterpret_cast<void*>(id);
  return error;
}

CUresult stream_object_id(CUcontext, void* object, std::uint64_t* id) {
  if (object == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = reinterpret_cast<std::uint64_t>(object);
  return CUDA_SUCCESS;
}

using FunctionVisitor = void (*)(void* opaque, CUfunction function, std::uint64_t unused);

std::size_t visit_functions(CUcontext, CUmodule module, FunctionVisitor visit, void* opaque) {
  if (ready() != CUDA_SUCCESS) return 0;
  try {
    std::vector<CUfunction> functions(backend()->module_functions(module, nullptr, 0));
    const std::size_t count = backend()->module_functions(module, functions.data(), functions.size());
    functions.resize(count < functions.size() ? count : functions.size());
    if (visit != nullptr)
      for (CUfunction function : functions) visit(opaque, function, 0);
    return functions.size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// ---- the tables -----------------------------------------------------------------------------------------------------

template <class F>
Word word(F* function) {
  return {.function = reinterpret_cast<void (*)()>(function)};
}

template <Table table>
struct Storage {
  static constexpr std::size_t count = identity(table).words;
  Word slots[count];

  Storage() : Storage(std::make_index_sequence<count>()) { slots[0].size = sizeof slots; }
  template <std::size_t... slot>
  explicit Storage(std::index_sequence<slot...>) : slots{word(&unserved<table, slot>)...} {}

  template <std::size_t slot, auto function>
  Storage& set() {
    slots[slot] = word(&Served<table, slot, function>::call);
    return *this;
  }
};

struct Tables {
  Storage<Table::Cudart> cudart;
  Storage<Table::ToolsTls> tools_tls;
  Storage<Table::Hooks> hooks;
  Storage<Table::ContextStorage> context_storage;
  Storage<Table::ContextChecks> context_checks;
  Storage<Table::Integrity> integrity;
  Storage<Table::Context> context;
  Storage<Table::Module> module;
  Storage<Table::Blas> blas;  // slot 4 writes two pointers on the real driver; cuBLAS continues if slot 4 refuses

  Tables() {
    cudart.set<1, &load_wrapper>().set<2, &primary_context>().set<6, &load_wrapper_ext>().set<7, &module_goes>();
    cudart.set<8, &load_container_ext>().set<12, &load_compilers>();
    cudart.slots[10].function = nullptr;
    tools_tls.set<2, &thread_context>();
    hooks.set<1, &hook_event>().set<2, &call_flag_array>().set<3, &hook_unused>().set<4, &hook_event>();
    hooks.set<5, &hook_unused>().set<6, &other_flag_array>();
    // This table has no size word; a NULL ends the table.
    context_storage.set<0, &storage_put>().set<1, &storage_delete>().set<2, &storage_get>();
    context_storage.slots[3].function = nullptr;
    context_checks.set<2, &context_check>().set<3, &global_check>();
    integrity.slots[1] = word(&integrity_check);  // the function's own address, which the digest covers
    context.set<4, &context_id>().set<39, &stream_object_id>().set<51, &stream_object>();
    module.set<7, &visit_functions>();
  }
};

const Word* words(Table table) {
  static const Tables& tables = *new Tables;  // outlives every exit handler
  switch (table) {
    case Table::Cudart: return tables.cudart.slots;
    case Table::ToolsTls: return tables.tools_tls.slots;
    case Table::Hooks: return tables.hooks.slots;
    case Table::ContextStorage: return tables.context_storage.slots;
    case Table::ContextChecks: return tables.context_checks.slots;
    case Table::Integrity: return tables.integrity.slots;
    case Table::Context: return tables.context.slots;
    case Table::Module: return tables.module.slots;
    case Table::Blas: return tables.blas.slots;
  }
  return nullptr;
}

}  // namespace

void install(const Backend* backend) { installed.store(backend, std::memory_order_release); }

const Backend* backend() { return installed.load(std::memory_order_acquire); }

namespace {

void log_asked(const char* name, const char* state) {
  const Backend* b = backend();
  if (b == nullptr || b->log == nullptr) return;
  char line[128];
  std::snprintf(line, sizeof line, "asked for export table %s: %s", name, state);
  b->log(line);
}

}  // namespace

CUresult export_table(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  for (std::size_t i = 0; i < std::size(identities); ++i) {
    if (std::memcmp(id->bytes, identities[i].id, sizeof identities[i].id) != 0) continue;
    *table = words(static_cast<Table>(i));
    log_asked(identities[i].name, "there");
    return CUDA_SUCCESS;
  }
  char unknown[33] = {};
  for (std::size_t i = 0; i < 16; ++i)
    std::snprintf(unknown + 2 * i, 3, "%02x", static_cast<unsigned>(static_cast<unsigned char>(id->bytes[i])));
  log_asked(unknown, "not there");
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cuabi
