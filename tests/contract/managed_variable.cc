// Cases for variables in managed memory: lookups, queries, and when program and GPU see each other's writes. A program
// that follows CUDA's rules for devices without CONCURRENT_MANAGED_ACCESS gets the same results on every backend.
#include "tests/contract/suite.h"

#include <string>

namespace contract {
namespace {

constexpr CUmemLocation on_device{CU_MEM_LOCATION_TYPE_DEVICE, device};

const char variables[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .b32 word = 7;
.visible .global .attribute(.managed) .align 4 .b32 other = 100;
.visible .global .attribute(.managed) .align 8 .b8 row[9000];
.visible .global .attribute(.managed) .align 8 .u64 place = generic(other);
.visible .global .align 4 .b32 own = 8;
.visible .entry add() {
  .reg .u32 %r<2>;
  ld.volatile.global.u32 %r1, [word];
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [word], %r1;
  ret;
}
.visible .entry ends() {
  .reg .u32 %r<3>;
  ld.volatile.global.u32 %r1, [row];
  ld.volatile.global.u32 %r2, [row+8996];
  add.u32 %r1, %r1, 1;
  add.u32 %r2, %r2, 2;
  st.volatile.global.u32 [row], %r1;
  st.volatile.global.u32 [row+8996], %r2;
  ret;
}
.visible .entry follow() {
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  ld.volatile.global.u64 %rd1, [place];
  ld.volatile.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 1;
  st.volatile.u32 [%rd1], %r1;
  ret;
}
)";

using Word = volatile unsigned;

void expect_word(const std::string& what, const Word* word, unsigned value) {
  show_guarded(what, [=] { return *word == value ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN; });
}
void write(Word* word, unsigned value) {
  show_guarded("the host writes " + std::to_string(value), [=] {
    *word = value;
    return CUDA_SUCCESS;
  });
}

CUmodule load() {
  CUmodule module = nullptr;
  CU(cuModuleLoadData)(&module, variables);
  return module;
}
CUfunction function(CUmodule module, const char* name) {
  CUfunction f = nullptr;
  CU(cuModuleGetFunction)(&f, module, name);
  return f;
}
CUdeviceptr address(CUmodule module, const char* name) {
  CUdeviceptr a = 0;
  CU(cuModuleGetGlobal_v2)(&a, nullptr, module, name);
  return a;
}
Word* word_at(CUdeviceptr at) { return reinterpret_cast<Word*>(at); }
CUresult launch(CUfunction f, CUstream stream = nullptr) {
  return CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

// After each kind of wait, host and kernel see each other's writes.
GROUP(managed_variable_waits, InContext) {
  const CUmodule module = load();
  const CUfunction add = function(module, "add");
  Word* const word = word_at(address(module, "word"));
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  char row[64 << 10] = {};
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
  CU(cuMemAlloc_v2)(&memory, sizeof row);
  CU(cuMemHostAlloc)(&pinned, sizeof row, 0);
  const auto turn = [&](const std::string& what, unsigned value, CUstream on, const auto& wait) {
    write(word, value);
    show("a kernel", launch(add, on));
    show(what, wait());
    expect_word("its value after " + what, word, value + 1);
  };
  const auto until_done = [](const auto& query) {
    CUresult result = CUDA_ERROR_NOT_READY;
    while (result == CUDA_ERROR_NOT_READY) result = query();
    return result;
  };
  turn("cuCtxSynchronize", 10, stream, [&] { return CU(cuCtxSynchronize)(); });
  turn("cuStreamSynchronize", 20, stream, [&] { return CU(cuStreamSynchronize)(stream); });
  turn("cuStreamSynchronize of the NULL stream", 30, nullptr, [&] { return CU(cuStreamSynchronize)(nullptr); });
  turn("cuEventSynchronize", 40, stream, [&] {
    CU(cuEventRecord)(event, stream);
    return CU(cuEventSynchronize)(event);
  });
  turn("cuStreamQuery", 50, stream, [&] { return until_done([&] { return CU(cuStreamQuery)(stream); }); });
  turn("cuEventQuery", 55, stream, [&] {
    CU(cuEventRecord)(event, stream);
    return until_done([&] { return CU(cuEventQuery)(event); });
  });
  turn("cuMemcpyDtoH", 60, nullptr, [&] { return CU(cuMemcpyDtoH_v2)(row, memory, 4); });
  turn("cuMemcpyDtoH of much", 70, nullptr, [&] { return CU(cuMemcpyDtoH_v2)(row, memory, sizeof row); });
  turn("cuMemcpyDtoH to pinned memory", 80, nullptr, [&] { return CU(cuMemcpyDtoH_v2)(pinned, memory, sizeof row); });
  turn("cuMemcpyDtoHAsync to pageable memory", 90, stream,
       [&] { return CU(cuMemcpyDtoHAsync_v2)(row, memory, sizeof row, stream); });
  turn("cuMemFree", 100, nullptr, [&] { return CU(cuMemFree_v2)(memory); });
  turn("cuCtxSynchronize again", 110, stream, [&] { return CU(cuCtxSynchronize)(); });
  show("cuStreamSynchronize of a stream that is done", CU(cuStreamSynchronize)(stream));
  expect_word("its value is still there", word, 111);
}

// Copies and fills that use the variable's address, as the host's side and as the device's side.
GROUP(managed_variable_copies, InContext) {
  const CUmodule module = load();
  const CUdeviceptr a = address(module, "word"), other = address(module, "other"), row = address(module, "row");
  Word *const word = word_at(a), *const second = word_at(other);
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  unsigned value = 0;
  CU(cuMemAlloc_v2)(&memory, 64);
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  write(word, 5);
  show("cuMemcpyDtoH of the variable", CU(cuMemcpyDtoH_v2)(&value, a, 4));
  show("it has what the host wrote", value);
  value = 6;
  show("cuMemcpyHtoD into the variable", CU(cuMemcpyHtoD_v2)(a, &value, 4));
  expect_word("the host sees it", word, 6);
  write(word, 7);
  show("cuMemcpyDtoD from the variable", CU(cuMemcpyDtoD_v2)(other, a, 4));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());  // copies within the device do not wait
  expect_word("the other has it", second, 7);
  show("cuMemcpyHtoD from the variable, as the host", CU(cuMemcpyHtoD_v2)(memory, const_cast<unsigned*>(word), 4));
  show("cuMemcpyDtoH into the variable, as the host", CU(cuMemcpyDtoH_v2)(const_cast<unsigned*>(second), memory, 4));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the other has it again", second, 7);
  write(word, 8);
  show("cuMemcpy", CU(cuMemcpy)(other, a, 4));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the other has 8", second, 8);
  show("cuMemsetD32", CU(cuMemsetD32_v2)(a, 9, 1));
  expect_word("the host sees the fill", word, 9);
  show("cuMemsetD32Async", CU(cuMemsetD32Async)(a, 10, 1, stream));
  show("cuMemcpyDtoHAsync", CU(cuMemcpyDtoHAsync_v2)(&value, a, 4, stream));
  show("cuStreamSynchronize", CU(cuStreamSynchronize)(stream));
  show("the copy has the fill", value);
  expect_word("and so has the variable", word, 10);
  show("cuMemsetD8 of the row", CU(cuMemsetD8_v2)(row, 1, 9000));
  expect_word("its first word", word_at(row), 0x01010101);
  expect_word("its last word", word_at(row + 8996), 0x01010101);
  show("ends", launch(function(module, "ends")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its first word then", word_at(row), 0x01010102);
  expect_word("its last word then", word_at(row + 8996), 0x01010103);
}

// A variable that the loader initialises with the address of another variable. Host and kernel both follow the pointer.
GROUP(managed_variable_pointers, InContext) {
  const CUmodule module = load();
  const CUdeviceptr place = address(module, "place"), other = address(module, "other");
  const auto* const to = reinterpret_cast<CUdeviceptr const volatile*>(place);
  show_guarded("it points to the other", [=] { return *to == other ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN; });
  expect_word("the other has its initial value", word_at(other), 100);
  show("follow", launch(function(module, "follow")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the kernel has followed it", word_at(other), 101);
}

// Two streams use two variables, and the host waits for only one stream at a time.
GROUP(managed_variable_streams, InContext) {
  const CUmodule module = load();
  const CUfunction add = function(module, "add"), follow = function(module, "follow");
  Word *const word = word_at(address(module, "word")), *const other = word_at(address(module, "other"));
  address(module, "place");
  CUstream one = nullptr, two = nullptr;
  CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING);
  CU(cuStreamCreate)(&two, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 3; ++i) {
    launch(add, one);
    launch(follow, two);
  }
  show("cuStreamSynchronize of one", CU(cuStreamSynchronize)(one));
  expect_word("its variable", word, 10);
  show("cuStreamSynchronize of the other", CU(cuStreamSynchronize)(two));
  expect_word("the other's variable", other, 103);
  expect_word("the first one's is kept", word, 10);
}

GROUP(managed_variable_attributes, InContext) {
  const CUmodule module = load();
  const CUdeviceptr a = address(module, "row") + 8;
  CUcontext context = nullptr;
  CUdeviceptr there = 0;
  void* here = nullptr;
  unsigned type = 9;
  int number = 9;
  const auto ask = [&](void* data, CUpointer_attribute attribute) {
    return CU(cuPointerGetAttribute)(data, attribute, a);
  };
  show("memory type", ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
  show("it is", type);
  show("device pointer", ask(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER));
  show_flag("it is the address", there == a);
  show("host pointer", ask(&here, CU_POINTER_ATTRIBUTE_HOST_POINTER));
  show_flag("it is the address", reinterpret_cast<CUdeviceptr>(here) == a);
  show("context", ask(&context, CU_POINTER_ATTRIBUTE_CONTEXT));
  show("ordinal", ask(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
  show("it is", number);
  type = 0;
  show("mapped", ask(&type, CU_POINTER_ATTRIBUTE_MAPPED));
  show("it is", type & 0xff);
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  show("cuMemGetAddressRange", CU(cuMemGetAddressRange_v2)(&start, &bytes, a));
  show_flag("it has the variable", start <= a && a + 8992 <= start + bytes);
  show("sync memops", CU(cuPointerSetAttribute)(&(type = 1), CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
  show("cuMemHostGetDevicePointer", CU(cuMemHostGetDevicePointer_v2)(&there, reinterpret_cast<void*>(a), 0));
  show("cuMemHostGetFlags", CU(cuMemHostGetFlags)(&type, reinterpret_cast<void*>(a)));
  show("cuMemFree", CU(cuMemFree_v2)(a - 8));
  show("cuMemFreeAsync", CU(cuMemFreeAsync)(a - 8, nullptr));
  show("cuMemFreeHost", CU(cuMemFreeHost)(reinterpret_cast<void*>(a - 8)));
  show("cuMemHostRegister", CU(cuMemHostRegister_v2)(reinterpret_cast<void*>(a - 8), 8, 0));
  show("cuMemPrefetchAsync", CU(cuMemPrefetchAsync_v2)(a, 16, on_device, 0, nullptr));
  show("cuMemPrefetchAsync past the end", CU(cuMemPrefetchAsync_v2)(a, 1 << 30, on_device, 0, nullptr));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
}

// The variable is looked up at the program's start without a context, as the C++ runtime does.
GROUP(managed_variable_of_library, Initialized) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr a = 0, again = 0, row = 0;
  std::size_t bytes = 0;
  show("cuLibraryLoadData", CU(cuLibraryLoadData)(&library, variables, nullptr, nullptr, 0, nullptr, nullptr, 0));
  show("cuLibraryGetManaged", CU(cuLibraryGetManaged)(&a, &bytes, library, "word"));
  show("its size", static_cast<long long>(bytes));
  show("cuLibraryGetManaged of the row", CU(cuLibraryGetManaged)(&row, &bytes, library, "row"));
  show("its size", static_cast<long long>(bytes));
  expect_word("its value in no context", word_at(a), 7);
  write(word_at(a), 20);
  show("again", CU(cuLibraryGetManaged)(&again, nullptr, library, "word"));
  show_flag("the same address", again == a);
  expect_word("its value is kept", word_at(a), 20);
  show("size only", CU(cuLibraryGetManaged)(nullptr, &bytes, library, "word"));
  show("nulls", CU(cuLibraryGetManaged)(nullptr, nullptr, library, "word"));
  show("no name", CU(cuLibraryGetManaged)(&again, &bytes, library, nullptr));
  show("an empty name", CU(cuLibraryGetManaged)(&again, &bytes, library, ""));
  show("no library", CU(cuLibraryGetManaged)(&again, &bytes, nullptr, "word"));
  show("one that there is not", CU(cuLibraryGetManaged)(&again, &bytes, library, "nothing"));
  show("one that is not managed", CU(cuLibraryGetManaged)(&again, &bytes, library, "own"));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show("cuLibraryGetManaged in a context", CU(cuLibraryGetManaged)(&again, nullptr, library, "word"));
  show_flag("the same address", again == a);
  show("cuLibraryGetGlobal", CU(cuLibraryGetGlobal)(&again, &bytes, library, "word"));
  show_flag("the same address", again == a);
  show("cuLibraryGetKernel", CU(cuLibraryGetKernel)(&kernel, library, "add"));
  show("a kernel", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 21", word_at(a), 21);
  show("cuLibraryUnload", CU(cuLibraryUnload)(library));
  unsigned type = 9;
  show("its memory type then", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
}

// Two modules that are loaded from the same image have separate variables.
GROUP(managed_variable_of_two_modules, InContext) {
  const CUmodule one = load(), two = load();
  Word *const first = word_at(address(one, "word")), *const second = word_at(address(two, "word"));
  show_flag("two addresses", first != second);
  write(first, 30);
  show("the second one's kernel", launch(function(two, "add")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the first", first, 30);
  expect_word("the second", second, 8);
  show("cuModuleUnload of the first", CU(cuModuleUnload)(one));
  write(second, 40);
  show("the second one's kernel again", launch(function(two, "add")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("the second", second, 41);
  const CUmodule three = load();
  Word* const third = word_at(address(three, "word"));
  expect_word("a third has its initial value", third, 7);
  expect_word("the second is kept", second, 41);
}

// When a created context ends, the variables of its modules end as well.
GROUP(managed_variable_in_contexts, InContext) {
  const CUmodule mine = load();
  Word* const word = word_at(address(mine, "word"));
  CUcontext created = nullptr;
  CUctxCreateParams params{};
  show("cuCtxCreate", CU(cuCtxCreate_v4)(&created, &params, 0, device));
  const CUmodule its = load();
  const CUdeviceptr a = address(its, "word");
  show("its kernel", launch(function(its, "add")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its variable", word_at(a), 8);
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(created));
  unsigned type = 9;
  show("its memory type then", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  write(word, 50);
  show("a kernel of the primary one", launch(function(mine, "add")));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its variable is kept", word, 51);
}

// A library's variable is used after a reset of the context.
GROUP(managed_variable_after_a_reset, InContext) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  CU(cuLibraryLoadData)(&library, variables, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "add");
  CU(cuLibraryGetManaged)(&a, nullptr, library, "word");
  show("a kernel", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 8", word_at(a), 8);
  show("cuDevicePrimaryCtxReset", CU(cuDevicePrimaryCtxReset_v2)(device));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show("cuLibraryGetManaged", CU(cuLibraryGetManaged)(&a, nullptr, library, "word"));
  show("a kernel", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 8 again", word_at(a), 8);
}

// The program keeps the address of a library's variable over a reset of the context, as the C++ runtime does.
GROUP(managed_variable_over_a_reset, InContext) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  unsigned managed = 9, seen = 0;
  CU(cuLibraryLoadData)(&library, variables, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "add");
  CU(cuLibraryGetManaged)(&a, nullptr, library, "word");
  launch(reinterpret_cast<CUfunction>(kernel));
  CU(cuDevicePrimaryCtxReset_v2)(device);
  show("it is managed", CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  show_guarded("its value", [&] {
    seen = *word_at(a);
    return CUDA_SUCCESS;
  });
  show("it is", seen);
  write(word_at(a), 20);
  show("a kernel", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 21", word_at(a), 21);
  expect_word("its value is 8", word_at(a), 8);
}

// A created context ends, but the library whose variable it used remains.
GROUP(managed_variable_of_library_in_contexts, InContext) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUcontext created = nullptr;
  CUdeviceptr a = 0, there = 0;
  CUctxCreateParams params{};
  CU(cuLibraryLoadData)(&library, variables, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CU(cuLibraryGetKernel)(&kernel, library, "add");
  CU(cuLibraryGetManaged)(&a, nullptr, library, "word");
  show("a kernel", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 8", word_at(a), 8);
  show("cuCtxCreate", CU(cuCtxCreate_v4)(&created, &params, 0, device));
  show("cuLibraryGetManaged there", CU(cuLibraryGetManaged)(&there, nullptr, library, "word"));
  show_flag("the same address", there == a);
  show("cuCtxDestroy", CU(cuCtxDestroy_v2)(created));
  write(word_at(a), 30);
  show("a kernel of the primary one", launch(reinterpret_cast<CUfunction>(kernel)));
  show("cuCtxSynchronize", CU(cuCtxSynchronize)());
  expect_word("its value is 31", word_at(a), 31);
}

}  // namespace
}  // namespace contract
