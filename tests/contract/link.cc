// Cases for the JIT linker: valid inputs, missing and duplicate symbols, and the result. No case reads the image,
// because its format is private to the driver.
#include "ring/abi/image.h"
#include "tests/contract/suite.h"

namespace contract {
namespace {

// `twice` calls `doubled` and reads `offset`, which another text defines.
char calls_another[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) doubled(.param .b32 value);
.extern .global .align 4 .u32 offset;
.visible .entry twice(.param .u64 out, .param .u32 value)
{
  .reg .u32 %r<5>;
  .reg .u64 %rd<3>;
  .param .b32 argument;
  .param .b32 result;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  st.param.b32 [argument], %r1;
  call.uni (result), doubled, (argument);
  ld.param.b32 %r2, [result];
  ld.global.u32 %r3, [offset];
  add.u32 %r4, %r2, %r3;
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r4;
  ret;
}
)";
char is_called[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 offset = 1;
.visible .func (.param .b32 result) doubled(.param .b32 value)
{
  .reg .u32 %r<3>;
  ld.param.b32 %r1, [value];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
)";
char broken[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { no such thing; }\n";
char nothing_in_it[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
char only_declares[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.extern .func absent();\n.visible .entry f() { ret; }\n";
char too_new[] = ".version 99.0\n.target sm_70\n.address_size 64\n";
char garbage[] = "garbage, not code";

template <std::size_t n>
CUresult add(CUlinkState state, char (&text)[n], const char* name = nullptr) {
  return CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_PTX, text, n, name, 0, nullptr, nullptr);
}
CUlinkState new_link() {
  CUlinkState state = nullptr;
  CU(cuLinkCreate_v2)(0, nullptr, nullptr, &state);
  return state;
}

// The info log and the error log of a link.
struct Logs {
  char info[1024] = "untouched", error[1024] = "untouched";
  CUjit_option names[4] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                           CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[4] = {info, reinterpret_cast<void*>(sizeof info), error, reinterpret_cast<void*>(sizeof error)};

  CUlinkState link() {
    CUlinkState state = nullptr;
    CU(cuLinkCreate_v2)(4, names, values, &state);
    return state;
  }
  void show_state(const std::string& when) const {
    const std::size_t length = reinterpret_cast<std::size_t>(values[3]);
    show_flag(when + ": the error log is untouched", std::strcmp(error, "untouched") == 0);
    show_flag(when + ": the error log is empty", error[0] == '\0');
    show_flag(when + ": the size is the room", length == sizeof error);
    show_flag(when + ": the size is the length", length == strnlen(error, sizeof error));
    show_flag(when + ": the size counts the NUL", length == strnlen(error, sizeof error) + 1);
  }
};

// Runs `twice` of a loaded module with the argument 20. The result is 41 if function and variable come from the other
// text.
void show_twice(CUmodule module) {
  CUdeviceptr out = 0;
  CUfunction function = nullptr;
  unsigned value = 20, result = 0;
  CU(cuMemAlloc_v2)(&out, 4);
  show("cuModuleGetFunction of it", CU(cuModuleGetFunction)(&function, module, "twice"));
  void* parameters[] = {&out, &value};
  show("launch", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  show("result", CU(cuMemcpyDtoH_v2)(&result, out, 4));
  show("it is", result);
}

GROUP(links, InContext) {
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
  CUdeviceptr address = 0;
  void* image = nullptr;
  std::size_t size = 0, bytes = 0;
  unsigned count = 0;
  show("cuLinkAddData of a caller", add(state, calls_another, "caller.ptx"));
  show("cuLinkAddData of a callee", add(state, is_called, "callee.ptx"));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show_flag("there is an image", image != nullptr && size != 0);
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show_twice(module);
  show("cuModuleGetFunctionCount", CU(cuModuleGetFunctionCount)(&count, module));
  show("functions", count);
  show("cuModuleGetFunction of what is none", CU(cuModuleGetFunction)(&function, module, "doubled"));
  show("cuModuleGetGlobal", CU(cuModuleGetGlobal_v2)(&address, &bytes, module, "offset"));
  show("its size", static_cast<long long>(bytes));
  show("cuModuleLoadDataEx of it", CU(cuModuleLoadDataEx)(&module, image, 0, nullptr, nullptr));
  show("cuLibraryLoadData of it", CU(cuLibraryLoadData)(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryGetKernel of it", CU(cuLibraryGetKernel)(&kernel, library, "twice"));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
  show("cuModuleGetFunction after it", CU(cuModuleGetFunction)(&function, module, "twice"));
  show_twice(module);
}

GROUP(link_create, InContext) {
  CUlinkState state = nullptr;
  CUjit_option level[] = {CU_JIT_OPTIMIZATION_LEVEL}, target[] = {CU_JIT_TARGET_FROM_CUCONTEXT},
               registers[] = {CU_JIT_MAX_REGISTERS}, unknown[] = {odd<CUjit_option>(99)},
               negative[] = {odd<CUjit_option>(-1)}, last[] = {CU_JIT_NUM_OPTIONS};
  void* four[] = {reinterpret_cast<void*>(4)};
  void* nine[] = {reinterpret_cast<void*>(9)};
  void* zero[] = {nullptr};
  const auto create = CU(cuLinkCreate_v2);
  show("cuLinkCreate", create(0, nullptr, nullptr, &state));
  show("cuLinkDestroy of it", CU(cuLinkDestroy)(state));
  show("cuLinkCreate null", create(0, nullptr, nullptr, nullptr));
  show("cuLinkCreate level 4", create(1, level, four, &state));
  show("cuLinkCreate level 9", create(1, level, nine, &state));
  show("cuLinkCreate the context's target", create(1, target, zero, &state));
  show("cuLinkCreate registers", create(1, registers, nine, &state));
  show("cuLinkCreate option 99", create(1, unknown, zero, &state));
  show("cuLinkCreate option -1", create(1, negative, zero, &state));
  show("cuLinkCreate the number of options", create(1, last, zero, &state));
  show("the old form", CU(cuLinkCreate)(0, nullptr, nullptr, &state));
  show_guarded("options null", [&] { return create(1, nullptr, four, &state); });
  show_guarded("values null", [&] { return create(1, level, nullptr, &state); });
}

GROUP(link_without_context, Initialized) {
  CUlinkState state = nullptr;
  show("cuLinkCreate", CU(cuLinkCreate_v2)(0, nullptr, nullptr, &state));
}

GROUP(link_old_forms, InContext) {
  CUlinkState state = nullptr;
  CUmodule module = nullptr;
  void* image = nullptr;
  show("cuLinkCreate", CU(cuLinkCreate)(0, nullptr, nullptr, &state));
  show("cuLinkAddData",
       CU(cuLinkAddData)(state, CU_JIT_INPUT_PTX, is_called, sizeof is_called, nullptr, 0, nullptr, nullptr));
  show("cuLinkAddFile",
       CU(cuLinkAddFile)(state, CU_JIT_INPUT_PTX, file_of(calls_another).c_str(), 0, nullptr, nullptr));
  show("cuLinkComplete without a size", CU(cuLinkComplete)(state, &image, nullptr));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show_twice(module);
  show("cuLinkAddFile absent", CU(cuLinkAddFile)(new_link(), CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr));
  show("cuLinkAddData null", CU(cuLinkAddData)(new_link(), CU_JIT_INPUT_PTX, nullptr, 1, nullptr, 0, nullptr, nullptr));
  show("cuLinkCreate null", CU(cuLinkCreate)(0, nullptr, nullptr, nullptr));
}

GROUP(link_files, InContext) {
  const CUlinkState state = new_link();
  const auto add_file = CU(cuLinkAddFile_v2);
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("absent", add_file(state, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr));
  show("an empty name", add_file(state, CU_JIT_INPUT_PTX, "", 0, nullptr, nullptr));
  show("absent, as a library", add_file(state, CU_JIT_INPUT_LIBRARY, "/nonexistent", 0, nullptr, nullptr));
  show("a file", add_file(state, CU_JIT_INPUT_PTX, file_of(calls_another).c_str(), 0, nullptr, nullptr));
  show("another", add_file(state, CU_JIT_INPUT_PTX, file_of(is_called).c_str(), 0, nullptr, nullptr));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show_twice(module);
  show("an empty file", add_file(new_link(), CU_JIT_INPUT_PTX, file_of("").c_str(), 0, nullptr, nullptr));
  show("garbage", add_file(new_link(), CU_JIT_INPUT_PTX, file_of(garbage).c_str(), 0, nullptr, nullptr));
  show("no state", add_file(nullptr, CU_JIT_INPUT_PTX, file_of(is_called).c_str(), 0, nullptr, nullptr));
  show("type 99", add_file(new_link(), odd<CUjitInputType>(99), file_of(is_called).c_str(), 0, nullptr, nullptr));
  show("a folder", add_file(new_link(), CU_JIT_INPUT_PTX, "/proc/self", 0, nullptr, nullptr));
  show_guarded("null", [&] { return add_file(new_link(), CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr); });
}

GROUP(link_bad_texts, InContext) {
  Logs logs;
  char empty[] = "";
  show("garbage", add(new_link(), garbage));
  show("broken", add(logs.link(), broken, "broken.ptx"));
  show("PTX 99.0", add(new_link(), too_new));
  show("empty", add(new_link(), empty));
  show("nothing in it", add(new_link(), nothing_in_it));
  show("it logged", logs.error[0] != 'u' && logs.error[0] != '\0' ? 1 : 0);
}

// Cases for the length of an input. A NUL must follow the text, whether or not the length includes it.
GROUP(link_lengths, InContext) {
  const auto add_bytes = [](char* text, std::size_t size) {
    return CU(cuLinkAddData_v2)(new_link(), CU_JIT_INPUT_PTX, text, size, nullptr, 0, nullptr, nullptr);
  };
  show("with its NUL", add_bytes(is_called, sizeof is_called));
  show("without its NUL", add_bytes(is_called, sizeof is_called - 1));
  show("half of it", add_bytes(is_called, sizeof is_called / 2));
  show("of 1", add_bytes(is_called, 1));
  show("of 0", add_bytes(is_called, 0));
}

GROUP(link_types, InContext) {
  const auto add_as = [](int type, char* data, std::size_t size) {
    return CU(cuLinkAddData_v2)(new_link(), odd<CUjitInputType>(type), data, size, "input", 0, nullptr, nullptr);
  };
  for (int type = 0; type <= CU_JIT_NUM_INPUT_TYPES; ++type) {
    if (type == CU_JIT_INPUT_PTX) continue;
    show("garbage as type " + std::to_string(type), add_as(type, garbage, sizeof garbage));
  }
  show("garbage as type -1", add_as(-1, garbage, sizeof garbage));
  show("garbage as type 99", add_as(99, garbage, sizeof garbage));
  for (const int type : {CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY})
    show("PTX as type " + std::to_string(type), add_as(type, is_called, sizeof is_called));
}

GROUP(link_empty_library, InContext) {
  char empty[] = "!<arch>\n";
  void* image = nullptr;
  std::size_t size = 0;
  const CUlinkState state = new_link();
  show("a library of nothing",
       CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_LIBRARY, empty, sizeof empty - 1, "empty.a", 0, nullptr, nullptr));
  show("PTX beside it", add(state, nothing_in_it));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
}

// A fat binary with one text, as the tool `fatbinary` writes it. NVIDIA's driver reads the offset of the entry's
// options, and crashes if the entry has no options.
struct FatBinary {
  cuabi::ContainerHeader container{};
  cuabi::EntryHeader entry{};
  // offset of the options from the entry, and an empty list of options
  std::uint64_t options[2] = {sizeof entry + 8, 0};
  char text[sizeof is_called + 8] = {};

  FatBinary() {
    container = {.magic = cuabi::container_magic,
                 .version = 1,
                 .header_size = sizeof container,
                 .size = sizeof entry + sizeof options + sizeof text};
    entry.kind = cuabi::entry_ptx;
    entry.version = 0x101;
    entry.header_size = sizeof entry + sizeof options;
    entry.options_offset = sizeof entry;
    entry.payload_size = sizeof text;
    entry.minor = 0;
    entry.major = 7;
    entry.sm = 70;
    entry.flags = 0x11;  // 64 bits and Linux, as compilers write it
    std::memcpy(text, is_called, sizeof is_called);
  }
};

GROUP(link_fat_binary, InContext) {
  static FatBinary binary;
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("cuModuleLoadData of it alone", CU(cuModuleLoadData)(&module, &binary));
  show("a fat binary", CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_FATBINARY, &binary, sizeof binary, "callee.fatbin", 0,
                                            nullptr, nullptr));
  show("PTX", add(state, calls_another));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show_twice(module);
  show("a fat binary as PTX",
       CU(cuLinkAddData_v2)(new_link(), CU_JIT_INPUT_PTX, &binary, sizeof binary, nullptr, 0, nullptr, nullptr));
  show("a fat binary as an object",
       CU(cuLinkAddData_v2)(new_link(), CU_JIT_INPUT_OBJECT, &binary, sizeof binary, nullptr, 0, nullptr, nullptr));
}

GROUP(link_data, InContext) {
  const CUlinkState state = new_link();
  const auto add_data = CU(cuLinkAddData_v2);
  CUjit_option level[] = {CU_JIT_OPTIMIZATION_LEVEL}, unknown[] = {odd<CUjit_option>(99)}, target[] = {CU_JIT_TARGET},
               time[] = {CU_JIT_WALL_TIME}, context[] = {CU_JIT_TARGET_FROM_CUCONTEXT},
               log[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* two[] = {reinterpret_cast<void*>(2)};
  void* volta[] = {reinterpret_cast<void*>(CU_TARGET_COMPUTE_75)};
  void* none[] = {nullptr};
  static char room[256];
  void* rooms[] = {room, reinterpret_cast<void*>(sizeof room)};
  const auto with = [&](CUlinkState to, unsigned count, CUjit_option* names, void** values) {
    return add_data(to, CU_JIT_INPUT_PTX, is_called, sizeof is_called, "callee.ptx", count, names, values);
  };
  show("no state", add_data(nullptr, CU_JIT_INPUT_PTX, is_called, sizeof is_called, nullptr, 0, nullptr, nullptr));
  show("level 2", with(state, 1, level, two));
  show("option 99", with(new_link(), 1, unknown, none));
  show("a time", with(new_link(), 1, time, none));
  show("a target", with(new_link(), 1, target, volta));
  show("the context's target", with(new_link(), 1, context, none));
  show("a log", with(new_link(), 2, log, rooms));
  show("an empty name", add(new_link(), is_called, ""));
  show_guarded("null", [&] {
    return add_data(new_link(), CU_JIT_INPUT_PTX, nullptr, sizeof is_called, nullptr, 0, nullptr, nullptr);
  });
  show_guarded("options null", [&] { return with(new_link(), 1, nullptr, two); });
  show_guarded("values null", [&] { return with(new_link(), 1, level, nullptr); });
}

GROUP(link_missing, InContext) {
  Logs logs;
  const CUlinkState state = logs.link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("add", add(state, calls_another, "caller.ptx"));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show_flag("the log names the function", std::strstr(logs.error, "doubled") != nullptr);
  show_flag("the log names the variable", std::strstr(logs.error, "offset") != nullptr);
  show_flag("the log names the input", std::strstr(logs.error, "caller.ptx") != nullptr);
  show("cuLinkAddData of what is missing", add(state, is_called));
  show("cuLinkComplete again", CU(cuLinkComplete)(state, &image, &size));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
  show("cuModuleLoadData of the caller alone", CU(cuModuleLoadData)(&module, calls_another));
}

GROUP(link_declared_only, InContext) {
  const CUlinkState state = new_link();
  void* image = nullptr;
  std::size_t size = 0;
  show("add", add(state, only_declares));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
}

GROUP(link_twice_defined, InContext) {
  Logs logs;
  const CUlinkState state = logs.link();
  void* image = nullptr;
  std::size_t size = 0;
  show("add", add(state, is_called, "first.ptx"));
  show("add again", add(state, is_called, "second.ptx"));
  show_flag("the log names the function", std::strstr(logs.error, "doubled") != nullptr);
  show_flag("the log names the first input", std::strstr(logs.error, "first.ptx") != nullptr);
  show_flag("the log names the second input", std::strstr(logs.error, "second.ptx") != nullptr);
  show("add the caller", add(state, calls_another, "caller.ptx"));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
}

GROUP(link_weak, InContext) {
  char weak[] = R"(
.version 7.0
.target sm_70
.address_size 64
.weak .func (.param .b32 result) doubled(.param .b32 value)
{
  .reg .u32 %r<2>;
  mov.u32 %r1, 7;
  st.param.b32 [result], %r1;
  ret;
}
)";
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("a weak function", add(state, weak));
  show("the same", add(state, weak));
  show("one that is not weak", add(state, is_called));
  show("the caller", add(state, calls_another));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show_twice(module);
}

GROUP(link_one_text, InContext) {
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("add", CU(cuLinkAddData_v2)(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx), std::strlen(ptx) + 1, nullptr, 0,
                                   nullptr, nullptr));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show("launch of empty",
       CU(cuLaunchKernel)(function_of(module, "empty"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

GROUP(link_of_nothing, InContext) {
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  const CUresult completed = CU(cuLinkComplete)(state, &image, &size);
  show("cuLinkComplete", completed);
  if (completed == CUDA_SUCCESS) show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
}

GROUP(link_no_kernels, InContext) {
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  unsigned count = 99;
  show("add", add(state, is_called));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show("cuModuleGetFunctionCount", CU(cuModuleGetFunctionCount)(&count, module));
  show("functions", count);
}

GROUP(link_complete, InContext) {
  const CUlinkState state = new_link();
  CUmodule module = nullptr;
  void *image = nullptr, *again = nullptr;
  std::size_t size = 0, same = 0;
  add(state, calls_another);
  add(state, is_called);
  show("no state", CU(cuLinkComplete)(nullptr, &image, &size));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuLinkComplete again", CU(cuLinkComplete)(state, &again, &same));
  show_flag("the same image", image == again);
  show("cuModuleLoadData of the first", CU(cuModuleLoadData)(&module, image));
  show("cuLinkAddData after it", add(state, nothing_in_it));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
  show("cuLinkDestroy null", CU(cuLinkDestroy)(nullptr));
  const CUlinkState other = new_link();
  add(other, is_called);
  show_guarded("cuLinkComplete null", [&] { return CU(cuLinkComplete)(other, nullptr, &size); });
}

// Shows when the driver writes the logs, and how it changes their sizes.
GROUP(link_logs, InContext) {
  Logs logs;
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("cuLinkCreate", CU(cuLinkCreate_v2)(4, logs.names, logs.values, &state));
  logs.show_state("created");
  show("add", add(state, calls_another, "caller.ptx"));
  logs.show_state("added");
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  logs.show_state("failed");
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
  logs.show_state("destroyed");
}

GROUP(link_logs_of_success, InContext) {
  Logs logs;
  const CUlinkState state = logs.link();
  void* image = nullptr;
  std::size_t size = 0;
  add(state, calls_another);
  add(state, is_called);
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  logs.show_state("linked");
  show_flag("the information log is untouched", std::strcmp(logs.info, "untouched") == 0);
  show_flag("the information log is empty", logs.info[0] == '\0');
  CU(cuLinkDestroy)(state);
  logs.show_state("destroyed");
}

// A link with two errors: the log of the second error follows the log of the first.
GROUP(link_logs_of_two, InContext) {
  Logs logs;
  const CUlinkState state = logs.link();
  add(state, is_called, "first.ptx");
  show("twice", add(state, is_called, "second.ptx"));
  show_flag("the log names the second", std::strstr(logs.error, "second.ptx") != nullptr);
  show("and again", add(state, is_called, "third.ptx"));
  show_flag("the log names the third", std::strstr(logs.error, "third.ptx") != nullptr);
  show_flag("the log still names the second", std::strstr(logs.error, "second.ptx") != nullptr);
}

GROUP(link_short_log, InContext) {
  char error[16] = "untouched";
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(8)};
  CUlinkState state = nullptr;
  CU(cuLinkCreate_v2)(2, names, values, &state);
  show("broken", add(state, broken));
  show_flag("the log is touched", std::strcmp(error, "untouched") != 0);
  show_flag("it ends within its room", strnlen(error, sizeof error) < 8);
  show_flag("nothing is behind its room", error[8] == 'd');
}

GROUP(link_wall_time, InContext) {
  CUjit_option names[] = {CU_JIT_WALL_TIME};
  void* values[] = {reinterpret_cast<void*>(~std::uintptr_t{0})};
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  float time = 0;
  show("cuLinkCreate", CU(cuLinkCreate_v2)(1, names, values, &state));
  add(state, is_called);
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  CU(cuLinkDestroy)(state);
  std::memcpy(&time, values, sizeof time);
  show_flag("there is a time", time >= 0);
}

// Shows whether a link state belongs to a context.
GROUP(link_after_pop, InContext) {
  const CUlinkState state = new_link();
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  show("cuCtxPopCurrent", CU(cuCtxPopCurrent_v2)(&context));
  show("cuLinkAddData", add(state, is_called));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuModuleLoadData of it", CU(cuModuleLoadData)(&module, image));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
}

GROUP(link_after_a_fault, InContext) {
  const CUlinkState state = new_link();
  CUlinkState other = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  CU(cuLaunchKernel)(function_of(load_module(), "stop"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  show("cuLinkAddData", add(state, is_called));
  show("cuLinkComplete", CU(cuLinkComplete)(state, &image, &size));
  show("cuLinkDestroy", CU(cuLinkDestroy)(state));
  show("cuLinkCreate", CU(cuLinkCreate_v2)(0, nullptr, nullptr, &other));
}

GROUP(link_after_a_reset, InContext) {
  const CUlinkState state = new_link();
  void* image = nullptr;
  std::size_t size = 0;
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  show_guarded("cuLinkAddData", [&] { return add(state, is_called); });
  show_guarded("cuLinkComplete", [&] { return CU(cuLinkComplete)(state, &image, &size); });
  show_guarded("cuLinkDestroy", [&] { return CU(cuLinkDestroy)(state); });
}

}  // namespace
}  // namespace contract
