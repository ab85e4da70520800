// A small CUDA program for tests with several processes. Like NVIDIA's runtime, it loads the driver only with dlopen.
//
// usage: loopback_program LIBCUDA MODE
// Prints one line per step for the test.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ring/api/cuda.h"
#include "tests/named_driver.h"

namespace {

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

int tell(const char* what, CUresult result) {
  std::printf("%s %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  return result == CUDA_SUCCESS ? 0 : 1;
}

bool start() {
  CUcontext context = nullptr;
  if (const CUresult r = CU(cuInit)(0); r != CUDA_SUCCESS) return tell("cuInit", r), false;
  return CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS && CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS;
}

// Returns true if memory can be allocated and copied in both directions without a change.
bool works() {
  constexpr std::size_t bytes = (3 << 20) + 5;
  std::vector<unsigned char> data(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 13);
  CUdeviceptr device = 0;
  return CU(cuMemAlloc_v2)(&device, bytes) == CUDA_SUCCESS &&
         CU(cuMemcpyHtoD_v2)(device, data.data(), bytes) == CUDA_SUCCESS &&
         CU(cuMemcpyDtoH_v2)(back.data(), device, bytes) == CUDA_SUCCESS && data == back &&
         CU(cuMemFree_v2)(device) == CUDA_SUCCESS;
}

int work() {
  if (!start() || !works()) return 1;
  say("works");
  return 0;
}

int finish_child(pid_t child, int parent_code) {
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return parent_code;
}

int fork_before() {
  const pid_t child = fork();
  if (child == 0) std::exit(work());
  return finish_child(child, work());
}

int fork_after() {
  if (!start()) return 1;
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    CUdeviceptr device = 0;
    const bool refused = CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuMemAlloc_v2)(&device, 16) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED;
    std::exit(refused ? 0 : 1);
  }
  const int code = finish_child(child, 0);
  return works() ? (say("works"), code) : 1;  // the child's exit has not ended the session
}

constexpr const char* endless = R"(.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 stop;
.visible .entry spin()
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
AGAIN:
  ld.volatile.global.u32 %r1, [stop];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}
)";

bool launch_endless() {
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  return CU(cuModuleLoadData)(&module, endless) == CUDA_SUCCESS &&
         CU(cuModuleGetFunction)(&spin, module, "spin") == CUDA_SUCCESS &&
         CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS;
}

// Makes a call that does not return while the host is alive.
int wait_for_ever() {
  if (!start() || !launch_endless()) return 1;
  say("waiting");
  return tell("cuCtxSynchronize", CU(cuCtxSynchronize)());
}

// Exits while work is in flight, much of it still in the ring.
int exit_in_flight() {
  if (!start()) return 1;
  CUdeviceptr device = 0;
  if (CU(cuMemAlloc_v2)(&device, 1 << 20) != CUDA_SUCCESS || !launch_endless()) return 1;
  for (int i = 0; i < 1000; ++i)
    if (CU(cuMemsetD32Async)(device, 1, 1 << 18, nullptr) != CUDA_SUCCESS) return 1;
  say("leaving");
  return 0;
}

// Starts eight threads that post and wait until the test kills the program, which keeps the worker's threads busy.
int flood() {
  if (!start()) return 1;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      CUdeviceptr device = 0;
      CUcontext context = nullptr;
      wrong += CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
               CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS || CU(cuMemAlloc_v2)(&device, 4096) != CUDA_SUCCESS;
      while (wrong == 0) {
        for (int i = 0; i < 16; ++i) wrong += CU(cuMemsetD32Async)(device, 1, 1024, nullptr) != CUDA_SUCCESS;
        wrong += CU(cuStreamSynchronize)(nullptr) != CUDA_SUCCESS;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return say("refused"), 1;
}

int entries(const char* folder) {
  int n = 0;
  DIR* dir = opendir(folder);
  while (dir != nullptr && readdir(dir) != nullptr) ++n;
  if (dir != nullptr) closedir(dir);
  return n;
}

// Loads the library and makes only calls that are allowed before cuInit. These calls must create neither a thread nor a
// descriptor.
int loaded_only(const char* path) {
  const int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  library = dlopen(path, RTLD_NOW);
  int version = 0, count = 0;
  const char* name = nullptr;
  if (CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS || version != CUDA_VERSION) return 1;
  if (CU(cuGetErrorName)(CUDA_ERROR_NO_DEVICE, &name) != CUDA_SUCCESS || std::strcmp(name, "CUDA_ERROR_NO_DEVICE") != 0)
    return 2;
  if (CU(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED) return 3;
  if (CU(cuCtxSynchronize)() != CUDA_ERROR_NOT_INITIALIZED) return 4;
  if (CU(cuInit)(1) != CUDA_ERROR_INVALID_VALUE) return 5;
  dlclose(library);  // the library stays loaded
  if (entries("/proc/self/task") != threads || entries("/proc/self/fd") != descriptors) return 6;
  say("quiet");
  return 0;
}

// Prints each ordinal with its UUID and PCI address.
int devices() {
  int count = 0;
  if (const CUresult r = CU(cuInit)(0); r != CUDA_SUCCESS) return tell("cuInit", r);
  if (CU(cuDeviceGetCount)(&count) != CUDA_SUCCESS) return 1;
  for (int i = 0; i < count; ++i) {
    CUdevice device = -1;
    CUuuid uuid{};
    char pci[16] = {};
    if (CU(cuDeviceGet)(&device, i) != CUDA_SUCCESS || CU(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS ||
        CU(cuDeviceGetPCIBusId)(pci, sizeof pci, device) != CUDA_SUCCESS)
      return 1;
    std::printf("%d ", i);
    for (const char byte : uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
    std::printf(" %s\n", pci);
  }
  return start() && works() ? (say("works"), 0) : 1;
}

// A call that is not served has an address, and fails whenever the program makes it.
int refused() {
  const auto find_call = CU(cuGetProcAddress_v2);
  decltype(&cuGraphAddMemFreeNode) add = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS) return 1;
  if (find_call("cuGraphAddMemFreeNode", reinterpret_cast<void**>(&add), CUDA_VERSION, 0, nullptr) != CUDA_SUCCESS)
    return 2;
  for (int i = 0; i < 3; ++i)
    if (add == nullptr || add(nullptr, nullptr, nullptr, 0, 0) != CUDA_ERROR_NOT_SUPPORTED) return 3;
  say("refused");
  return 0;
}

// ---- faults --------------------------------------------------------------------------------------------------------

constexpr const char* reads_a_texture = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry read(.param .u64 object, .param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [object];
  ld.param.u64 %rd2, [out];
  mov.u32 %r0, 0;
  tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r0}];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

// Runs a kernel that uses a texture number which no cuTexObjectCreate returned.
int made_up_texture() {
  CUmodule module = nullptr;
  CUfunction read = nullptr;
  CUdeviceptr out = 0;
  if (!start() || CU(cuMemAlloc_v2)(&out, 16) != CUDA_SUCCESS) return 1;
  if (CU(cuModuleLoadData)(&module, reads_a_texture) != CUDA_SUCCESS) return 2;
  if (CU(cuModuleGetFunction)(&read, module, "read") != CUDA_SUCCESS) return 3;
  std::uint64_t number = 0x12345;
  void* params[] = {&number, &out};
  tell("cuLaunchKernel", CU(cuLaunchKernel)(read, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  tell("cuCtxSynchronize", CU(cuCtxSynchronize)());
  tell("cuMemAlloc_v2", CU(cuMemAlloc_v2)(&out, 16));
  return 0;
}

volatile std::sig_atomic_t told_to_end = 0;

// Works until SIGTERM, and then checks the memory that was allocated at the start.
int work_on() {
  constexpr unsigned byte = 0x5a;
  std::vector<unsigned char> back(4096);
  CUdeviceptr kept = 0;
  std::signal(SIGTERM, [](int) { told_to_end = 1; });
  if (!start() || CU(cuMemAlloc_v2)(&kept, back.size()) != CUDA_SUCCESS) return 1;
  if (CU(cuMemsetD8_v2)(kept, byte, back.size()) != CUDA_SUCCESS || !works()) return 2;
  say("works");
  while (told_to_end == 0)
    if (!works()) return say("refused"), 3;
  if (CU(cuMemcpyDtoH_v2)(back.data(), kept, back.size()) != CUDA_SUCCESS) return 4;
  for (const unsigned char b : back)
    if (b != byte) return 5;
  return say("works"), 0;
}

// ---- the arena -----------------------------------------------------------------------------------------------------

// Memory that host and GPU share, filled with one byte value.
struct Piece {
  static constexpr std::size_t bytes = 4 << 20;
  unsigned char* at = nullptr;
  unsigned char byte = 0;

  bool is_whole() const { return *at == byte && std::memcmp(at, at + 1, bytes - 1) == 0; }
};

CUresult take_managed(Piece& piece) {
  CUdeviceptr at = 0;
  const CUresult result = CU(cuMemAllocManaged)(&at, Piece::bytes, CU_MEM_ATTACH_GLOBAL);
  if (result != CUDA_SUCCESS) return result;
  piece.at = reinterpret_cast<unsigned char*>(at);
  return CU(cuMemsetD8_v2)(at, piece.byte, Piece::bytes);
}
CUresult give_managed_back(const Piece& piece) { return CU(cuMemFree_v2)(reinterpret_cast<CUdeviceptr>(piece.at)); }

// Registers memory of the program that already contains its byte value.
CUresult take_registered(Piece& piece) {
  if (piece.at == nullptr) {
    void* at = mmap(nullptr, Piece::bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
    piece.at = static_cast<unsigned char*>(at);
    std::memset(piece.at, piece.byte, Piece::bytes);
  }
  return CU(cuMemHostRegister_v2)(piece.at, Piece::bytes, 0);
}
// Unregistering must return the program's bytes with the memory.
CUresult give_registered_back(const Piece& piece) {
  const CUresult result = CU(cuMemHostUnregister)(piece.at);
  return piece.is_whole() ? result : CUDA_ERROR_UNKNOWN;
}

// Takes pieces until the arena is full, frees one piece, and then takes a piece that did not fit before.
int fill_the_arena(CUresult (*take)(Piece&), CUresult (*give_back)(const Piece&)) {
  if (!start()) return 1;
  std::vector<Piece> held;
  Piece next{.byte = 1};
  CUresult result = CUDA_SUCCESS;
  for (; next.byte < 200 && (result = take(next)) == CUDA_SUCCESS; next = {.byte = ++next.byte}) held.push_back(next);
  tell("full", result);
  const auto tell_whether_whole = [&] {
    bool whole = held.size() >= 4 && (next.at == nullptr || next.is_whole());
    for (const Piece& piece : held) whole = whole && piece.is_whole();
    say(whole ? "whole" : "spoilt");
  };
  tell_whether_whole();
  const Piece first = held.front();
  held.erase(held.begin());
  tell("given back", give_back(first));
  tell("taken", take(next));
  tell_whether_whole();
  Piece more{.byte = 201};
  tell("full", take(more));
  tell_whether_whole();
  return works() ? 0 : 2;
}

// Makes many registrations, and then as many streams as the quota allows.
int register_many() {
  constexpr std::size_t page = 4096, count = 500;
  void* const at = mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || !start()) return 1;
  std::memset(at, 1, count * page);
  CUresult result = CUDA_SUCCESS;
  for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i)
    result = CU(cuMemHostRegister_v2)(static_cast<char*>(at) + i * page, page, 0);
  tell("registered", result);
  int streams = 0;
  while (streams < 1000 && result == CUDA_SUCCESS) {
    CUstream stream = nullptr;
    result = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = CU(cuStreamSynchronize)(stream);
    if (result == CUDA_SUCCESS) ++streams;
  }
  tell("streams end with", result);
  std::printf("%d\n", streams);
  return 0;
}

// ---- reserved addresses --------------------------------------------------------------------------------------------

// The size of a reservation with a hint. The driver reserves addresses at the hint if the program has no mapping there.
constexpr std::size_t hinted_bytes = std::size_t{64} << 20;

CUdeviceptr reserve_at(const void* hint, const char* what) {
  CUdeviceptr at = 0;
  tell(what, CU(cuMemAddressReserve)(&at, hinted_bytes, 0, reinterpret_cast<CUdeviceptr>(hint), 0));
  return at;
}

// Returns true if memory can be mapped at the reserved addresses, written and read.
bool can_be_used(CUdeviceptr at) {
  constexpr std::size_t bytes = 2 << 20;
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemAccessDesc access{.location = p.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory = 0;
  std::vector<unsigned char> back(bytes);
  return CU(cuMemCreate)(&memory, bytes, &p, 0) == CUDA_SUCCESS &&
         CU(cuMemMap)(at, bytes, 0, memory, 0) == CUDA_SUCCESS &&
         CU(cuMemSetAccess)(at, bytes, &access, 1) == CUDA_SUCCESS &&
         CU(cuMemsetD8_v2)(at, 0x77, bytes) == CUDA_SUCCESS &&
         CU(cuMemcpyDtoH_v2)(back.data(), at, bytes) == CUDA_SUCCESS && back.front() == 0x77 && back.back() == 0x77 &&
         CU(cuMemUnmap)(at, bytes) == CUDA_SUCCESS && CU(cuMemRelease)(memory) == CUDA_SUCCESS;
}

// Asks the driver to reserve addresses that the program already uses.
int reserve_what_is_taken() {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  auto* const hint = reinterpret_cast<unsigned char*>(std::uintptr_t{0x7d00'0000'0000});
  void* const mine = mmap(hint + Piece::bytes, Piece::bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mine != hint + Piece::bytes || !start()) return 1;
  const Piece piece{static_cast<unsigned char*>(mine), 0x3c};
  std::memset(piece.at, piece.byte, Piece::bytes);
  const auto* const beside = hint + hinted_bytes;
  say(reserve_at(beside, "beside it") == reinterpret_cast<CUdeviceptr>(beside) ? "as hinted" : "elsewhere");
  const CUdeviceptr at = reserve_at(hint, "over it");
  const auto start_of_hint = reinterpret_cast<CUdeviceptr>(hint);
  const bool apart = at + hinted_bytes <= start_of_hint || start_of_hint + hinted_bytes <= at;
  say(apart ? "elsewhere" : "over it");
  say(piece.is_whole() ? "whole" : "spoilt");
  say(can_be_used(at) ? "used" : "of no use");
  void* const again = mmap(reinterpret_cast<void*>(at), Piece::bytes, PROT_READ, flags, -1, 0);
  say(again == MAP_FAILED ? "kept free" : "mapped over");
  munmap(mine, Piece::bytes);
  say(reserve_at(hint, "after it") == start_of_hint ? "as hinted" : "elsewhere");
  return 0;
}

// ---- closed standard descriptors -----------------------------------------------------------------------------------

// Closes the descriptors 0 to 2 whose bits are set.
void close_standard(unsigned which) {
  for (int fd = 0; fd < 3; ++fd)
    if ((which >> fd & 1) != 0) close(fd);
}

// The closed descriptors among 0 to 2, as bits.
unsigned closed_standard() {
  unsigned closed = 0;
  for (int fd = 0; fd < 3; ++fd) closed |= fcntl(fd, F_GETFD) < 0 ? 1u << fd : 0u;
  return closed;
}

// Redirects the open outputs to /dev/null. The test reads no output in this mode, so a full pipe would block the
// program.
bool discard_output() {
  const unsigned closed = closed_standard();
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int fd : {1, 2})
    if ((closed >> fd & 1) == 0 && dup2(null, fd) != fd) return false;
  return close(null) == 0 && closed_standard() == closed;
}

// Writes text to descriptors 1 and 2, which reaches any file that was opened under these numbers.
void shout() {
  const std::string text(64 << 10, '#');
  for (const int fd : {1, 2}) [[maybe_unused]] const auto n = write(fd, text.data(), text.size());
}

// `moment`: 's' if the program started with these descriptors closed, 'b' closes them before cuInit, 'a' after cuInit.
// The exit code shows the progress, since there may be no output.
int without_standard_descriptors(char moment, unsigned which) {
  if (!discard_output()) return 9;
  if (moment == 'b') close_standard(which);
  if (moment != 'a' && closed_standard() != which) return 10;
  if (!start()) return 11;
  if (moment == 'a') close_standard(which);
  if (closed_standard() != which) return 12;  // the library uses one of these descriptors
  shout();
  close_standard(which);  // closes them again, as a daemon does
  if (!works() || closed_standard() != which) return 13;
  shout();
  return works() ? 0 : 14;
}

// ---- checks that only the driver makes -----------------------------------------------------------------------------

constexpr std::size_t short_bytes = 4096;

// PTX of a kernel that reads a texel by its number.
constexpr const char* reads_a_texel = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry read(.param .u64 object, .param .u64 out, .param .u32 number)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [object];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r5, [number];
  tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

// Creates textures and texture references that are longer than their memory. The kernel reads the first texel of a
// texture, and then a texel beyond the memory.
int long_texture() {
  CUdeviceptr memory = 0, out = 0;
  CUmodule module = nullptr;
  CUfunction read = nullptr;
  if (!start() || CU(cuMemAlloc_v2)(&memory, short_bytes) != CUDA_SUCCESS ||
      CU(cuMemAlloc_v2)(&out, 16) != CUDA_SUCCESS || CU(cuMemsetD32_v2)(memory, 77, short_bytes / 4) != CUDA_SUCCESS)
    return 1;
  if (CU(cuModuleLoadData)(&module, reads_a_texel) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&read, module, "read") != CUDA_SUCCESS)
    return 2;
  constexpr std::size_t texels = 100'000'000;  // linear memory may have more texels than this
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  sampling.flags = CU_TRSF_READ_AS_INTEGER;
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory, resource.res.linear.sizeInBytes = texels * 4;
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32, resource.res.linear.numChannels = 1;
  CUtexObject linear = 0, rows = 0;
  tell("linear", CU(cuTexObjectCreate)(&linear, &resource, &sampling, nullptr));
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = memory, resource.res.pitch2D.pitchInBytes = 512;
  resource.res.pitch2D.width = 64, resource.res.pitch2D.height = 60000;
  resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32, resource.res.pitch2D.numChannels = 1;
  tell("rows", CU(cuTexObjectCreate)(&rows, &resource, &sampling, nullptr));
  CUtexref reference = nullptr;
  std::size_t offset = 0;
  CU(cuTexRefCreate)(&reference);
  CU(cuTexRefSetFormat)(reference, CU_AD_FORMAT_UNSIGNED_INT32, 1);
  tell("reference", CU(cuTexRefSetAddress_v2)(&offset, reference, memory, 100 * short_bytes));
  const CUDA_ARRAY_DESCRIPTOR d{.Width = 64, .Height = 6000, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
  tell("rows of a reference", CU(cuTexRefSetAddress2D_v3)(reference, &d, memory, 512));
  std::uint32_t number = 0, value = 0;
  void* params[] = {&linear, &out, &number};
  tell("launch", CU(cuLaunchKernel)(read, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  tell("inside", CU(cuMemcpyDtoH_v2)(&value, out, sizeof value));
  std::printf("%u\n", value);
  number = texels - 1;
  tell("launch", CU(cuLaunchKernel)(read, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  tell("beyond", CU(cuCtxSynchronize)());
  return 0;
}

// ---- long names ----------------------------------------------------------------------------------------------------

void compare(CUresult result, const char* got, const std::string& wanted) {
  tell("its name", result);
  say(result == CUDA_SUCCESS && wanted == got ? "same" : "another");
}

int long_names() {
  constexpr std::size_t letters = 70'000;
  const std::string kernel = "k" + std::string(letters - 1, 'x'), variable = "v" + std::string(letters - 1, 'y');
  const std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 " + variable +
                           " = 5;\n.visible .entry " + kernel + "()\n{\n  ret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr, listed = nullptr;
  CUdeviceptr at = 0;
  std::size_t bytes = 0;
  const char* name = nullptr;
  const auto show_value = [&] {
    std::uint32_t value = 0;
    CU(cuMemcpyDtoH_v2)(&value, at, sizeof value);
    std::printf("%u\n", value);
  };
  if (!start()) return 1;
  tell("module", CU(cuModuleLoadData)(&module, text.c_str()));
  tell("function", CU(cuModuleGetFunction)(&function, module, kernel.c_str()));
  const auto compare_name = [&](CUresult result) { compare(result, name, kernel); };
  compare_name(CU(cuFuncGetName)(&name, function));
  tell("listed", CU(cuModuleEnumerateFunctions)(&listed, 1, module));
  compare_name(CU(cuFuncGetName)(&name, listed));
  tell("launch", CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  tell("variable", CU(cuModuleGetGlobal_v2)(&at, &bytes, module, variable.c_str()));
  show_value();
  tell("no such function", CU(cuModuleGetFunction)(&function, module, variable.c_str()));
  tell("no such variable", CU(cuModuleGetGlobal_v2)(&at, &bytes, module, kernel.c_str()));
  CUlibrary library = nullptr;
  CUkernel found = nullptr;
  tell("library", CU(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  tell("kernel", CU(cuLibraryGetKernel)(&found, library, kernel.c_str()));
  compare_name(CU(cuKernelGetName)(&name, found));
  tell("variable", CU(cuLibraryGetGlobal)(&at, &bytes, library, variable.c_str()));
  tell("no such kernel", CU(cuLibraryGetKernel)(&found, library, variable.c_str()));
  return 0;
}

// ---- launches that wait --------------------------------------------------------------------------------------------

constexpr const char* launched = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry fault()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry count(.param .u64 at, .param .u32 turns)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r3, [turns];
  mov.u32 %r1, 0;
AGAIN:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, %r3;
  @%p1 bra AGAIN;
  ld.volatile.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd1], %r2;
  ret;
}
)";

CUfunction function_of(CUmodule& module, const char* name) {
  CUfunction found = nullptr;
  if (module == nullptr && CU(cuModuleLoadData)(&module, launched) != CUDA_SUCCESS) return nullptr;
  return CU(cuModuleGetFunction)(&found, module, name) == CUDA_SUCCESS ? found : nullptr;
}

int illegal_launch() {
  CUmodule module = nullptr;
  if (!start()) return 1;
  const CUfunction fault = function_of(module, "fault");
  tell("cuLaunchKernel", CU(cuLaunchKernel)(fault, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  tell("cuCtxSynchronize", CU(cuCtxSynchronize)());
  return 0;
}

// A slow kernel increments a word of pinned memory. The program checks the word after each launch.
int blocking_launches() {
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  void* pinned = nullptr;
  CUdeviceptr at = 0;
  if (!start() || CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 1;
  if (CU(cuMemHostAlloc)(&pinned, 4, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) return 2;
  if (CU(cuMemHostGetDevicePointer_v2)(&at, pinned, 0) != CUDA_SUCCESS) return 3;
  const CUfunction count = function_of(module, "count");
  std::uint32_t turns = 3'000'000;
  const auto* word = static_cast<volatile unsigned*>(pinned);
  *static_cast<volatile unsigned*>(pinned) = 0;
  unsigned wanted = 0;
  void* params[] = {&at, &turns};
  const auto look = [&](const char* form, CUresult result) {
    const unsigned now = *word;
    std::printf("%s: %s\n", form, result != CUDA_SUCCESS ? "refused" : now == wanted + 1 ? "done" : "not yet");
    std::fflush(stdout);
    CU(cuCtxSynchronize)();
    wanted = *word;
  };
  const auto on = [&](CUstream s) { return CU(cuLaunchKernel)(count, 1, 1, 1, 1, 1, 1, 0, s, params, nullptr); };
  look("the NULL stream", on(nullptr));
  look("a stream", on(stream));
  look("the thread's stream", on(CU_STREAM_PER_THREAD));
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, &priority, 1};
  look("attributes", CU(cuLaunchKernelEx)(&config, count, params, nullptr));
  look("cooperative", CU(cuLaunchCooperativeKernel)(count, 1, 1, 1, 1, 1, 1, 0, nullptr, params));
  CU(cuFuncSetBlockShape)(count, 1, 1, 1);
  CU(cuParamSetv)(count, 0, &at, sizeof at);
  CU(cuParamSeti)(count, sizeof at, turns);
  CU(cuParamSetSize)(count, sizeof at + sizeof turns);
  look("the old form", CU(cuLaunch)(count));
  CUcontext popped = nullptr;
  CU(cuCtxPopCurrent_v2)(&popped);
  const CUresult result = on(nullptr);
  CU(cuCtxPushCurrent_v2)(popped);
  look("no current context", result);
  return 0;
}

// ---- threads that are cancelled ------------------------------------------------------------------------------------

// Makes calls that sleep, copy with helper threads, read files and print. The thread itself has no cancellation point.
// Returns the number of the first call that failed, or 0.
int calls_of_a_cancelled_thread(const char* file) {
  constexpr std::size_t bytes = 40 << 20;
  CUcontext context = nullptr;
  CUmodule module = nullptr, of_file = nullptr;
  CUdeviceptr device = 0;
  void* pinned = nullptr;
  if (CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS) return 1;
  if (CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS) return 2;
  if (CU(cuMemAlloc_v2)(&device, bytes) != CUDA_SUCCESS) return 3;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 4;
  if (CU(cuMemcpyHtoD_v2)(device, at, bytes) != CUDA_SUCCESS) return 5;
  if (CU(cuMemcpyDtoH_v2)(at, device, bytes) != CUDA_SUCCESS) return 6;
  if (CU(cuMemHostRegister_v2)(at, bytes, 0) != CUDA_SUCCESS) return 7;
  if (CU(cuMemHostUnregister)(at) != CUDA_SUCCESS) return 8;
  if (CU(cuMemHostAlloc)(&pinned, 4, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) return 9;
  if (CU(cuModuleLoad)(&of_file, file) != CUDA_SUCCESS) return 10;
  CUdeviceptr word = 0;
  if (CU(cuMemHostGetDevicePointer_v2)(&word, pinned, 0) != CUDA_SUCCESS) return 11;
  const CUfunction count = function_of(module, "count");
  std::uint32_t turns = 100'000;
  void* params[] = {&word, &turns};
  for (int i = 0; i < 20; ++i)
    if (CU(cuLaunchKernel)(count, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr) != CUDA_SUCCESS) return 12;
  if (CU(cuCtxSynchronize)() != CUDA_SUCCESS) return 13;
  for (int i = 0; i < 20'000; ++i)  // more than fit into the ring
    if (CU(cuMemsetD32Async)(device, 1, 1024, nullptr) != CUDA_SUCCESS) return 14;
  if (CU(cuStreamSynchronize)(nullptr) != CUDA_SUCCESS) return 15;
  return CU(cuMemFreeHost)(pinned) == CUDA_SUCCESS && CU(cuMemFree_v2)(device) == CUDA_SUCCESS ? 0 : 16;
}

struct Cancelled {
  CUresult initialized = CUDA_ERROR_UNKNOWN;
  int wrong = -1;
  char file[64] = "/tmp/ivgpu-cancelled-XXXXXX";
};

// Another thread cancels this thread before its first call, so any cancellation point would end it.
void* run_cancelled(void* argument) {
  auto& of = *static_cast<Cancelled*>(argument);
  pthread_cancel(pthread_self());
  of.initialized = CU(cuInit)(0);
  of.wrong = calls_of_a_cancelled_thread(of.file);
  pthread_testcancel();
  return nullptr;
}

int cancelled() {
  if (const char* off = std::getenv("IVGPU_TEST_OFF"); off != nullptr) setenv("IVGPU_OFF", off, 1);
  setenv("IVGPU_COPY_THREADS", "2", 1);
  Cancelled of;
  const int file = mkstemp(of.file);
  const auto length = static_cast<ssize_t>(std::strlen(launched));
  if (file < 0 || write(file, launched, static_cast<std::size_t>(length)) != length) return 1;
  close(file);
  pthread_t thread;
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, run_cancelled, &of) != 0 || pthread_join(thread, &result) != 0) return 2;
  unlink(of.file);
  tell("cuInit", of.initialized);
  std::printf("calls %d\n", of.wrong);
  say(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
  return work();
}

// ---- another root --------------------------------------------------------------------------------------------------

// Changes to an empty, deleted folder. A user other than root can do so in a user namespace.
bool change_root() {
  char folder[] = "/tmp/ivgpu-root-XXXXXX";
  if (mkdtemp(folder) == nullptr || chdir(folder) != 0 || rmdir(folder) != 0) return false;
  return chroot(".") == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(".") == 0);
}

int register_in_another_root() {
  if (!start()) return 1;
  if (!change_root()) return 2;
  Piece piece{.byte = 0x5d};
  tell("registered", take_registered(piece));
  say(piece.is_whole() ? "whole" : "spoilt");
  tell("unregistered", give_registered_back(piece));
  // The library logs that this memory cannot be registered.
  void* const shared = mmap(nullptr, Piece::bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::printf("refused %d\n", CU(cuMemHostRegister_v2)(shared, Piece::bytes, 0) == CUDA_ERROR_NOT_SUPPORTED);
  say(works() ? "works" : "does not work");
  return 0;
}

// ---- the end, while threads call -----------------------------------------------------------------------------------

// This handler is registered before cuInit, so it runs after the driver's exit handler.
void look_at_exit() {
  int count = 0;
  say(CU(cuDeviceGetCount)(&count) == CUDA_ERROR_DEINITIALIZED ? "deinitialized" : "still there");
}

// The child runs the remaining exit handlers and the library's destructor, while the parent waits for the test.
void fork_at_exit() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) return;
  finish_child(child, 0);
  std::fflush(stdout);
  while (told_to_end == 0) sched_yield();
}

int exit_and_fork() {
  std::signal(SIGTERM, [](int) { told_to_end = 1; });
  std::atexit(fork_at_exit);
  return start() && works() ? 7 : 1;
}

int exit_while_calling() {
  static std::atomic<unsigned> begun{0};
  std::atexit(look_at_exit);
  CUmodule module = nullptr;
  CUdeviceptr device = 0;
  CUcontext context = nullptr;
  if (!start() || CU(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || CU(cuMemAlloc_v2)(&device, 1 << 20) != CUDA_SUCCESS)
    return 1;
  const CUfunction count = function_of(module, "count");
  const auto call_for_ever = [=](auto call) {
    std::thread([=] {
      CU(cuCtxSetCurrent)(context);
      for (unsigned i = 0;; ++i) {
        call();
        if (i == 10) ++begun;
      }
    }).detach();
  };
  for (int i = 0; i < 3; ++i)
    call_for_ever([=] {
      CUdeviceptr at = device;
      std::uint32_t turns = 100;
      void* params[] = {&at, &turns};
      CU(cuLaunchKernel)(count, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
    });
  call_for_ever([=] { CU(cuStreamSynchronize)(nullptr); });
  call_for_ever([=] {
    static char bytes[200'000];
    CU(cuMemcpyHtoD_v2)(device + 4096, bytes, sizeof bytes);
  });
  call_for_ever([] {
    void* pinned = nullptr;
    if (CU(cuMemHostAlloc)(&pinned, 4096, 0) == CUDA_SUCCESS) CU(cuMemFreeHost)(pinned);
  });
  while (begun < 6) sched_yield();
  say("leaving");
  std::exit(7);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 8;
  const char* mode = argv[2];
  if (std::strcmp(mode, "loaded") == 0) return loaded_only(argv[1]);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 7;
  }
  if (std::strcmp(mode, "work") == 0) return work();
  if (std::strcmp(mode, "devices") == 0) return devices();
  if (std::strcmp(mode, "refused") == 0) return refused();
  if (std::strcmp(mode, "fork-before") == 0) return fork_before();
  if (std::strcmp(mode, "fork-after") == 0) return fork_after();
  if (std::strcmp(mode, "wait") == 0) return wait_for_ever();
  if (std::strcmp(mode, "exit-in-flight") == 0) return exit_in_flight();
  if (std::strcmp(mode, "work-on") == 0) return work_on();
  if (std::strcmp(mode, "made-up-texture") == 0) return made_up_texture();
  if (std::strcmp(mode, "fill-managed") == 0) return fill_the_arena(take_managed, give_managed_back);
  if (std::strcmp(mode, "fill-registered") == 0) return fill_the_arena(take_registered, give_registered_back);
  if (std::strcmp(mode, "register-many") == 0) return register_many();
  if (std::strcmp(mode, "reserve-taken") == 0) return reserve_what_is_taken();
  if (std::strncmp(mode, "closed-", 7) == 0 && std::strlen(mode) == 9)
    return without_standard_descriptors(mode[7], static_cast<unsigned>(mode[8] - '0'));
  if (std::strcmp(mode, "long-texture") == 0) return long_texture();
  if (std::strcmp(mode, "long-names") == 0) return long_names();
  if (std::strcmp(mode, "illegal-launch") == 0) return illegal_launch();
  if (std::strcmp(mode, "blocking-launches") == 0) return blocking_launches();
  if (std::strcmp(mode, "cancelled") == 0) return cancelled();
  if (std::strcmp(mode, "chroot") == 0) return register_in_another_root();
  if (std::strcmp(mode, "fork-at-exit") == 0) return exit_and_fork();
  if (std::strcmp(mode, "exit-while-calling") == 0) return exit_while_calling();
  if (std::strcmp(mode, "flood") == 0) return flood();
  return 8;
}
