// One row per attack of a hostile guest, with the record and its result. Broken: the session ends, because no program
// can send that record through our library. In all other rows, the record gets an error and never reaches the driver.
// The strict fake driver aborts on an object or address that the session does not have.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr CUresult broken = CUDA_ERROR_UNKNOWN;

// A second session on the same driver, with its own objects.
class Neighbour {
 public:
  explicit Neighbour(World& world)
      : base_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        session_(ring::SlotView(base_, bytes), world.driver.table(), host::ServeOptions{}) {
    memory_ =
        ask(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{4096, 0, 0, 0})).read<api::AllocateReply>().address;
    stream_ = Id{Handle::Stream, 900, 3}.value();
    EXPECT_EQ(ask(ids::cuStreamCreate, Payload::of(stream_, 0)).result, CUDA_SUCCESS);
  }
  ~Neighbour() { munmap(base_, bytes); }

  std::uint64_t memory() const { return memory_; }
  std::uint64_t stream() const { return stream_; }
  std::uint64_t arena() const { return session_.arena.address(); }
  Answer ask(int call, const Payload& payload) { return send_to(session_, call, payload); }

 private:
  static constexpr std::size_t bytes = ring::arena_offset + (4 << 20);
  std::byte* base_;
  host::Session session_;
  std::uint64_t memory_ = 0, stream_ = 0;
};

struct Scene {
  World world;
  Neighbour neighbour{world};
  std::unique_ptr<std::uint64_t[]> heap{new std::uint64_t[512]{}};

  std::uint64_t on_the_heap() const { return reinterpret_cast<std::uint64_t>(heap.get()); }
  std::uint64_t real_handle() {  // a driver handle, which no guest ever sees
    CUstream stream = nullptr;
    world.driver.table().cuStreamCreate(&stream, 0);
    return reinterpret_cast<std::uint64_t>(stream);
  }
  Payload copy(std::uint64_t device, std::uint64_t arena, std::uint64_t bytes, std::uint64_t stream = 0) const {
    return Payload::record(api::CopyRecord{device, arena, bytes, stream, 0});
  }
  Payload launch(std::uint64_t function, std::uint64_t stream) const {
    const api::LaunchRecord record{function, stream, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 0};
    return Payload::record(record);
  }
  Payload image(std::uint32_t form, const void* bytes, std::size_t n) {
    const api::LoadRecord record{world.next(Handle::Module), ring::absent, form, 1, 0, 0};
    return Payload::record(record).slot(n).bytes(bytes, n);
  }
};

struct Row {
  const char* name;
  int call;
  CUresult expected;
  std::function<Payload(Scene&)> payload;
};

Payload wrapper_of(Scene& s, std::uint32_t form) {
  const std::uint64_t words[] = {0x1'4662'43b1ULL, s.on_the_heap(), 0};
  return s.image(form, words, sizeof words);
}

// Makes an image with this magic. The image's header claims `said` bytes; the record has 128 bytes.
Payload container(Scene& s, std::uint64_t said) {
  std::uint64_t words[16] = {0x0010'0001'ba55'ed50ULL, said - 16};
  return s.image(0, words, sizeof words);
}
Payload elf(Scene& s, std::uint64_t sections_at, std::uint16_t sections) {
  unsigned char bytes[128] = {0x7f, 'E', 'L', 'F', 2};
  std::memcpy(bytes + 40, &sections_at, 8);
  const std::uint16_t size = 64;
  std::memcpy(bytes + 58, &size, 2), std::memcpy(bytes + 60, &sections, 2);
  return s.image(0, bytes, sizeof bytes);
}

const Row sizes_that_overflow[] = {
    {"MemsetCount", ids::cuMemsetD32_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.world.memory(64), 0, (1ULL << 62) + 1); }},
    {"MemsetToTheEndOfAllAddresses", ids::cuMemsetD8_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.world.memory(64), 0, most); }},
    {"CopyLengthThatWraps", ids::cuMemcpyHtoD_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), 4096, most - 4095); }},
    {"CopyOffsetThatWraps", ids::cuMemcpyDtoH_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), most - 63, 64); }},
    {"InlineCopyThatPadsToNothing", ids::cuMemcpyHtoD_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), ring::absent, most - 6); }},
    {"ReplyThatPadsToNothing", ids::cuMemcpyDtoH_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), ring::absent, most - 6); }},
    {"LaunchParameters", ids::cuLaunchKernel, broken,
     [](Scene& s) {
       api::LaunchRecord r{s.world.function(s.world.module(), "nothing"), 0, {1, 1, 1}, {1, 1, 1}, 0, ~0u - 6, 0, 0};
       return Payload::record(r);
     }},
    {"LaunchAttributes", ids::cuLaunchKernelEx, broken,
     [](Scene& s) {
       api::LaunchRecord r{s.world.function(s.world.module(), "nothing"), 0, {1, 1, 1}, {1, 1, 1}, 0, 0, ~0u, 0};
       return Payload::record(r);
     }},
    {"ImageParts", ids::cuModuleLoadData, broken,
     [](Scene& s) {
       const api::LoadRecord r{s.world.next(Handle::Module), ring::absent, 2, 2, 0, 0};
       return Payload::record(r).slot(most - 7).slot(16).slot(0).slot(0);
     }},
    {"ImagePartThatPadsToNothing", ids::cuModuleLoadData, broken,
     [](Scene& s) {
       const api::LoadRecord r{s.world.next(Handle::Module), 0, 0, 1, 0, 0};
       return Payload::record(r).slot(most - 6);
     }},
    {"Name", ids::cuModuleGetFunction, broken,
     [](Scene& s) {
       return Payload::record(api::LookupRecord{s.world.module(), s.world.next(Handle::Function), most}).text("fill");
     }},
    {"Pin", ids::pin_arena, broken,
     [](Scene& s) {
       s.world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0}));
       return Payload::record(api::PinArenaRecord{most - ring::huge_page + 1, ring::huge_page});
     }},
    {"Output", ids::take_output, broken, [](Scene&) { return Payload::record(api::TakeOutputRecord{most}); }},
};

const Row addresses_of_the_worker[] = {
    {"Memset", ids::cuMemsetD8_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.on_the_heap(), 0x41, 8); }},
    {"CopyTo", ids::cuMemcpyHtoD_v2, CUDA_ERROR_INVALID_VALUE, [](Scene& s) { return s.copy(s.on_the_heap(), 0, 64); }},
    {"CopyFrom", ids::cuMemcpyDtoH_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return s.copy(s.on_the_heap(), ring::absent, 64); }},
    {"CopyBetween", ids::cuMemcpyDtoD_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.world.memory(64), s.on_the_heap(), 64); }},
    {"ArenaOffsetFromIt", ids::cuMemcpyDtoH_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), s.on_the_heap() - s.world.session->arena.address(), 64); }},
    {"Free", ids::cuMemFree_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::record(api::FreeRecord{s.on_the_heap()}); }},
    {"RealStream", ids::cuStreamSynchronize, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::of(s.real_handle()); }},
    {"RealStreamDestroyed", ids::cuStreamDestroy_v2, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::of(s.real_handle()); }},
    {"Function", ids::cuLaunchKernel, CUDA_ERROR_INVALID_HANDLE, [](Scene& s) { return s.launch(s.on_the_heap(), 0); }},
    {"Module", ids::cuModuleUnload, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::record(api::CloseRecord{s.on_the_heap()}); }},
    {"WrapperBehindAnImagesEnd", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE,
     [](Scene& s) {
       const api::LoadRecord record{s.world.next(Handle::Module), ring::absent, 0, 1, 0, 0};
       return Payload::record(record).slot(1).slot(0x1'4662'43b1ULL);
     }},
    {"WrapperForAnImage", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return wrapper_of(s, 0); }},
    {"WrapperInAWrapper", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return wrapper_of(s, 1); }},
    {"WrapperPrelinked", ids::cuLibraryLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return wrapper_of(s, 2); }},
};

const Row lengths_of_images[] = {
    {"ContainerToItsEnd", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return container(s, 128); }},
    {"ContainerPastItsEnd", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE,
     [](Scene& s) { return container(s, 136); }},
    {"ContainerOfAllMemory", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE,
     [](Scene& s) { return container(s, most); }},
    {"ElfWithoutTables", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return elf(s, 0, 0); }},
    {"ElfToItsEnd", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return elf(s, 64, 1); }},
    {"ElfPastItsEnd", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return elf(s, 72, 1); }},
    {"ElfFarAway", ids::cuLibraryLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return elf(s, 1ULL << 40, 1); }},
    {"ElfThatWraps", ids::cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, [](Scene& s) { return elf(s, most - 63, 1); }},
};

const Row what_others_have[] = {
    {"Memory", ids::cuMemsetD8_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.neighbour.memory(), 0x41, 8); }},
    {"MemoryFreed", ids::cuMemFree_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::record(api::FreeRecord{s.neighbour.memory()}); }},
    {"MemoryCopiedOut", ids::cuMemcpyDtoD_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.world.memory(64), s.neighbour.memory(), 64); }},
    {"Stream", ids::cuStreamSynchronize, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::of(s.neighbour.stream()); }},
    {"StreamDestroyed", ids::cuStreamDestroy_v2, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::of(s.neighbour.stream()); }},
    {"ArenaByItsAddress", ids::cuMemcpyDtoD_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) { return Payload::of(s.world.memory(64), s.neighbour.arena(), 64); }},
    {"ArenaByAnOffset", ids::cuMemcpyHtoD_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), s.neighbour.arena() - s.world.session->arena.address(), 64); }},
    {"SlotBehindOnesOwn", ids::cuMemcpyHtoD_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), World::arena_bytes, 64); }},
    {"SlotBeforeOnesOwn", ids::cuMemcpyHtoD_v2, broken,
     [](Scene& s) { return s.copy(s.world.memory(64), most - ring::arena_offset + 1, 64); }},
};

const Row ids_used_again[] = {
    {"OfAStreamThatIsGone", ids::cuStreamSynchronize, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) {
       const std::uint64_t stream = s.world.stream();
       s.world.send(ids::cuStreamDestroy_v2, Payload::of(stream));
       return Payload::of(stream);
     }},
    {"OfAnotherGeneration", ids::cuStreamSynchronize, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) { return Payload::of(s.world.stream() + (1ULL << Id::generation_at)); }},
    {"ThatIsTaken", ids::cuStreamCreate, broken, [](Scene& s) { return Payload::of(s.world.stream(), 0); }},
    {"WhoseIndexIsTaken", ids::cuEventCreate, broken,
     [](Scene& s) {
       return Payload::of(Id{Handle::Event, Id::of(s.world.stream()).index, 9}.value(), 0);
     }},
    {"ThatIsFreeAgain", ids::cuStreamCreate, CUDA_SUCCESS,
     [](Scene& s) {
       const std::uint64_t stream = s.world.stream();
       s.world.send(ids::cuStreamDestroy_v2, Payload::of(stream));
       return Payload::of(stream, 0);
     }},
    {"OfAFunctionWhoseModuleIsGone", ids::cuFuncLoad, CUDA_ERROR_INVALID_HANDLE,
     [](Scene& s) {
       const std::uint64_t module = s.world.module(), f = s.world.function(module, "fill");
       s.world.send(ids::cuModuleUnload, Payload::record(api::CloseRecord{module}));
       return Payload::of(f);
     }},
    {"OfAGlobalWhoseLibrarysModuleIsGone", ids::cuMemsetD8_v2, CUDA_ERROR_INVALID_VALUE,
     [](Scene& s) {
       const std::uint64_t library = s.world.library(), module = s.world.next(Handle::Module);
       s.world.send(ids::cuLibraryGetModule, Payload::record(api::DeriveRecord{library, module}));
       const Payload find = Payload::record(api::GlobalRecord{module, 8}).text("counter");
       const auto at = s.world.send(ids::cuModuleGetGlobal_v2, find).read<api::GlobalReply>().address;
       EXPECT_NE(at, 0u);
       s.world.send(ids::cuLibraryUnload, Payload::record(api::CloseRecord{library}));
       return Payload::of(at, 1, 16);
     }},
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Misuse : public testing::TestWithParam<Row> {};

TEST_P(Misuse, IsRefused) {
  Scene scene;
  const Payload payload = GetParam().payload(scene);
  const Answer answer = scene.world.send(GetParam().call, payload);
  EXPECT_EQ(answer.broken, GetParam().expected == broken);
  EXPECT_EQ(answer.result, GetParam().expected);
  for (std::size_t i = 0; i < 512; ++i) EXPECT_EQ(scene.heap[i], 0u) << "the worker's heap was written to";
  EXPECT_EQ(scene.neighbour.ask(ids::cuStreamSynchronize, Payload::of(scene.neighbour.stream())).result, CUDA_SUCCESS);
}

const auto name_of_row = [](const testing::TestParamInfo<Row>& row) { return std::string(row.param.name); };
INSTANTIATE_TEST_SUITE_P(SizesThatOverflow, Misuse, testing::ValuesIn(sizes_that_overflow), name_of_row);
INSTANTIATE_TEST_SUITE_P(AddressesOfTheWorker, Misuse, testing::ValuesIn(addresses_of_the_worker), name_of_row);
INSTANTIATE_TEST_SUITE_P(LengthsOfImages, Misuse, testing::ValuesIn(lengths_of_images), name_of_row);
INSTANTIATE_TEST_SUITE_P(WhatOthersHave, Misuse, testing::ValuesIn(what_others_have), name_of_row);
INSTANTIATE_TEST_SUITE_P(IdsUsedAgain, Misuse, testing::ValuesIn(ids_used_again), name_of_row);

TEST(Resets, TakeTheirModulesGlobalsAlong) {
  World world;
  const Payload find = Payload::record(api::GlobalRecord{world.module(), 8}).text("counter");
  const auto at = world.send(ids::cuModuleGetGlobal_v2, find).read<api::GlobalReply>().address;
  EXPECT_EQ(world.send(ids::cuMemsetD8_v2, Payload::of(at, 1, 16)).result, CUDA_SUCCESS);
  world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{0}));
  EXPECT_EQ(world.send(ids::cuMemsetD8_v2, Payload::of(at, 1, 16)).result, CUDA_ERROR_INVALID_VALUE);
}

// An image must reach the driver if, and only if, its headers stay within its bytes. The error code alone cannot show
// whether the driver was called.
TEST(Images, OnlyThoseThatKeepWithinReachTheDriver) {
  Scene scene;
  const auto loads = [&] { return scene.world.driver.calls("cuModuleLoadDataEx"); };
  for (const auto& [payload, reaches] : {std::pair(container(scene, 128), true),
                                         std::pair(container(scene, 136), false), std::pair(elf(scene, 64, 1), true),
                                         std::pair(elf(scene, 72, 1), false), std::pair(wrapper_of(scene, 0), false)}) {
    const std::uint64_t before = loads();
    scene.world.send(ids::cuModuleLoadData, payload);
    EXPECT_EQ(loads() - before, reaches ? 1u : 0u);
  }
}

// If a name does not fit into the reply, the reply omits the name, and the guest fetches the name in pieces.
TEST(Lookups, ANameThatDoesNotFitIsLeftOut) {
  World world;
  const std::uint64_t module = world.module(), library = world.library();
  const std::string longest = "fill" + std::string(ring::max_record - 48 - 4, 'x');
  for (const auto& [call, owner, kind] : {std::tuple(ids::cuModuleGetFunction, module, Handle::Function),
                                          std::tuple(ids::cuLibraryGetKernel, library, Handle::Kernel)}) {
    const std::uint64_t id = world.next(kind);
    const Answer told = world.send(call, world.lookup(owner, id, longest.c_str()));
    EXPECT_FALSE(told.broken);
    EXPECT_EQ(told.result, CUDA_SUCCESS);
    const auto reply = told.read<api::FunctionReply>();
    EXPECT_EQ(reply.id, id);
    EXPECT_EQ(reply.name_bytes, 1u) << "only the NUL";
    EXPECT_TRUE(world.send(call, world.lookup(owner, id, "fill")).broken) << "the id is taken";
  }
}

// If the description of a kernel's parameters does not fit into a reply, a guest cannot launch the kernel. The worker
// therefore makes no object.
TEST(Lookups, IsNotMadeWhereItCannotBeReported) {
  World world;
  static std::size_t params;  // the number of parameters of each kernel; each parameter has one byte
  static constexpr auto tell = [](std::size_t i, std::size_t* offset, std::size_t* size) {
    return *offset = i, *size = 1, i < params ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  host::Driver driver = world.driver.table();
  driver.cuFuncGetParamInfo = [](CUfunction, std::size_t i, std::size_t* at, std::size_t* n) { return tell(i, at, n); };
  driver.cuKernelGetParamInfo = [](CUkernel, std::size_t i, std::size_t* at, std::size_t* n) { return tell(i, at, n); };
  host::Session session(world.session->slot, driver, World::with(0));
  const std::uint64_t module = world.next(Handle::Module), library = world.next(Handle::Library);
  ASSERT_EQ(send_to(session, ids::cuModuleLoadData, world.load(module)).result, CUDA_SUCCESS);
  ASSERT_EQ(send_to(session, ids::cuLibraryLoadData, world.load(library)).result, CUDA_SUCCESS);
  // The name takes at least one word, for its NUL.
  constexpr std::size_t most_params =
      (ring::reply_bytes - sizeof(api::FunctionReply) - 8) / sizeof(api::ParameterPlace);
  for (const auto& [call, owner, kind] : {std::tuple(ids::cuModuleGetFunction, module, Handle::Function),
                                          std::tuple(ids::cuLibraryGetKernel, library, Handle::Kernel)}) {
    const std::uint64_t id = world.next(kind);
    params = most_params + 1;
    const Answer refused = send_to(session, call, world.lookup(owner, id, "nothing"));
    EXPECT_FALSE(refused.broken);
    EXPECT_EQ(refused.result, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_TRUE(refused.reply.empty());
    EXPECT_EQ(session.objects.find(id, kind), nullptr);
    params = most_params;
    const Answer told = send_to(session, call, world.lookup(owner, id, "nothing"));
    EXPECT_EQ(told.result, CUDA_SUCCESS) << "the id is free";
    EXPECT_EQ(told.read<api::FunctionReply>().params, most_params);
  }
}

// ---- one channel ends an object that another channel uses -----------------------------------------------------------

// A driver that lets another channel run right after one of its calls, before the session knows the result. If the
// other channel has to wait for the call, the test waits for that channel only briefly.
class Meanwhile : public testing::Test {
 protected:
  Meanwhile() : driver_(world.driver.table()), session(slot(), driver_, World::with(0)) {
    inner_ = &world.driver.table();
    driver_.cuMemAlloc_v2 = [](CUdeviceptr* at, std::size_t bytes) { return behind(inner_->cuMemAlloc_v2(at, bytes)); };
    driver_.cuLibraryGetKernel = [](CUkernel* kernel, CUlibrary library, const char* name) {
      return behind(inner_->cuLibraryGetKernel(kernel, library, name));
    };
    driver_.cuLibraryGetGlobal = [](CUdeviceptr* at, std::size_t* bytes, CUlibrary library, const char* name) {
      return behind(inner_->cuLibraryGetGlobal(at, bytes, library, name));
    };
    driver_.cuStreamCreate = [](CUstream* stream, unsigned flags) {
      return behind(inner_->cuStreamCreate(stream, flags));
    };
  }
  // Sends `made` while another channel sends `ended`. Returns the reply to `made`.
  Answer while_ending(int made, const Payload& payload, int ended, const Payload& other) {
    std::promise<void> through;
    other_ = [&, waits = through.get_future().share()] {
      thread_ = std::thread([&] {
        session.contexts.make_current(0);
        EXPECT_EQ(send_to(session, ended, other).result, CUDA_SUCCESS);
        through.set_value();
      });
      waits.wait_for(std::chrono::milliseconds(100));
    };
    const Answer answer = send_to(session, made, payload);
    thread_.join();
    return answer;
  }

  World world;

 private:
  ring::SlotView slot() const { return world.session->slot; }
  static CUresult behind(CUresult result) {
    if (other_) std::exchange(other_, nullptr)();
    return result;
  }
  static inline const host::Driver* inner_ = nullptr;
  static inline std::function<void()> other_;
  std::thread thread_;
  host::Driver driver_;

 protected:
  host::Session session;
};

constexpr std::uint64_t a_library = Id{Handle::Library, 1, 0}.value(), a_kernel = Id{Handle::Kernel, 2, 0}.value(),
                        a_stream = Id{Handle::Stream, 3, 0}.value();
const Payload reset_record = Payload::record(api::EndContextRecord{0});

TEST_F(Meanwhile, MemoryThatAResetTookMayNotBeNamed) {
  const Answer made = while_ending(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0}),
                                   ids::cuDevicePrimaryCtxReset_v2, reset_record);
  EXPECT_EQ(world.driver.live_allocations(), 0u);
  EXPECT_FALSE(session.memory.addresses.contains(made.read<api::AllocateReply>().address, 64));
  EXPECT_EQ(session.memory.addresses.count(), 0u);
}

TEST_F(Meanwhile, AStreamThatAResetTookIsNotKnown) {
  while_ending(ids::cuStreamCreate, Payload::of(a_stream, 0), ids::cuDevicePrimaryCtxReset_v2, reset_record);
  EXPECT_EQ(session.objects.find(a_stream, Handle::Stream), nullptr);
  EXPECT_EQ(session.objects.count(), 0u);
}

TEST_F(Meanwhile, AKernelGoesWithItsLibrary) {
  ASSERT_EQ(send_to(session, ids::cuLibraryLoadData, world.load(a_library)).result, CUDA_SUCCESS);
  while_ending(ids::cuLibraryGetKernel, world.lookup(a_library, a_kernel, "nothing"), ids::cuLibraryUnload,
               Payload::record(api::CloseRecord{a_library}));
  EXPECT_EQ(session.objects.find(a_kernel, Handle::Kernel), nullptr);
  EXPECT_EQ(session.objects.count(), 0u);
}

TEST_F(Meanwhile, AGlobalGoesWithItsLibrary) {
  ASSERT_EQ(send_to(session, ids::cuLibraryLoadData, world.load(a_library)).result, CUDA_SUCCESS);
  const Answer made =
      while_ending(ids::cuLibraryGetGlobal, Payload::record(api::GlobalRecord{a_library, 8}).text("counter"),
                   ids::cuLibraryUnload, Payload::record(api::CloseRecord{a_library}));
  EXPECT_FALSE(session.memory.addresses.contains(made.read<api::GlobalReply>().address, 16));
}

}  // namespace
