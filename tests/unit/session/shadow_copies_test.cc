// Shadow copies of managed variables: when bytes are copied, when a shadow copy ends, and invalid records about shadow
// copies. The fake driver frees a variable's memory when the variable ends, so AddressSanitizer reports a late copy.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "host/session/memory/shadow_copies.h"
#include "tests/unit/session/channel.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
using host::ShadowCopies;

constexpr std::uint64_t variable_bytes = 24;

class SessionShadowCopies : public testing::Test {
 protected:
  SessionShadowCopies() { run(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0})); }

  // Sends a record through a channel. Returns the result of a waited record, or the deferred result.
  CUresult run(int call, const Payload& payload, std::uint16_t flags = ring::flag_wants_reply) {
    Channel channel(world);
    channel.control().deferred_count = 0;
    channel.put(call, payload, flags);
    channel.serve();
    if ((flags & ring::flag_wants_reply) != 0) return static_cast<CUresult>(channel.control().reply_result);
    return channel.control().deferred_count == 0 ? CUDA_SUCCESS
                                                 : static_cast<CUresult>(channel.control().deferred_result);
  }
  api::GlobalReply find(int call, std::uint64_t from, const char* name) {
    const Payload payload = Payload::record(api::GlobalRecord{from, std::strlen(name) + 1}).text(name);
    const Answer answer = world.send(call, payload);
    EXPECT_EQ(answer.result, CUDA_SUCCESS) << name;
    return answer.read<api::GlobalReply>();
  }
  std::uint64_t variable_of(std::uint64_t module) { return find(ids::cuModuleGetGlobal_v2, module, "shared").address; }
  CUresult shadow_copy(std::uint64_t address, std::uint64_t bytes, std::uint64_t arena) {
    return world.send(ids::shadow_variable, Payload::record(api::ShadowRecord{address, bytes, arena})).result;
  }
  void expect_broken(const api::ShadowRecord& record, const char* what) {
    EXPECT_TRUE(world.send(ids::shadow_variable, Payload::record(record)).broken) << what;
  }
  char* arena(std::uint64_t offset = 0) { return reinterpret_cast<char*>(world.session->arena.address()) + offset; }
  static char* driver(std::uint64_t address) { return reinterpret_cast<char*>(address); }
  Payload launch() {
    if (function_ == 0) function_ = world.function(world.module(), "nothing");
    return Payload::record(api::LaunchRecord{function_, 0, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 0});
  }
  void post_launch() { EXPECT_EQ(run(ids::cuLaunchKernel, launch(), 0), CUDA_SUCCESS); }
  void wait() { EXPECT_EQ(run(ids::cuCtxSynchronize, {}), CUDA_SUCCESS); }

  World world;

 private:
  std::uint64_t function_ = 0;
};

// ---- copies --------------------------------------------------------------------------------------------------------

TEST_F(SessionShadowCopies, AMirrorBeginsAsTheVariableIs) {
  const std::uint64_t a = variable_of(world.module());
  std::strcpy(driver(a), "initial value");
  std::strcpy(arena(64), "nonsense");
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  ASSERT_EQ(shadow_copy(a, variable_bytes, 64), CUDA_SUCCESS);
  EXPECT_TRUE(world.session->memory.shadow_copies.any());
  EXPECT_STREQ(arena(64), "initial value");
}

TEST_F(SessionShadowCopies, TheProgramsWritesGoUpBeforeALaunchAndTheGpusComeDownAtAWait) {
  const std::uint64_t a = variable_of(world.module());
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  std::strcpy(arena(), "program");
  EXPECT_STREQ(driver(a), "") << "nothing was submitted";
  post_launch();
  EXPECT_STREQ(driver(a), "program");
  std::strcpy(driver(a), "kernel");
  post_launch();
  EXPECT_STREQ(arena(), "program") << "a posted launch says of nothing that it is done";
  EXPECT_STREQ(driver(a), "kernel") << "what the program has not written again does not go up again";
  wait();
  EXPECT_STREQ(arena(), "kernel");
}

TEST_F(SessionShadowCopies, AQueryThatIsNotDoneBringsNothingDown) {
  const std::uint64_t a = variable_of(world.module()), stream = world.stream();
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  std::strcpy(driver(a), "kernel");
  world.driver.fail_next("cuStreamQuery", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(run(ids::cuStreamQuery, Payload::of(stream)), CUDA_ERROR_NOT_READY);
  EXPECT_STREQ(arena(), "");
  EXPECT_EQ(run(ids::cuStreamQuery, Payload::of(stream)), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "kernel");
}

TEST_F(SessionShadowCopies, BytesThatOneSideHasNotWrittenDoNotReplaceTheOthers) {
  const std::uint64_t a = variable_of(world.module());
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  for (std::uint64_t i = 0; i < variable_bytes; ++i) (i % 2 == 0 ? arena() : driver(a))[i] = 'x';
  wait();
  post_launch();
  for (std::uint64_t i = 0; i < variable_bytes; ++i) {
    EXPECT_EQ(arena()[i], 'x') << i;
    EXPECT_EQ(driver(a)[i], 'x') << i;
  }
}

// A synchronous fill is complete once executed, in a waited record as in a posted record.
TEST_F(SessionShadowCopies, SynchronousFillsComeDownWithTheirOwnCall) {
  const std::uint64_t a = variable_of(world.module());
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  const std::uint64_t waits = world.driver.calls("cuStreamSynchronize");
  EXPECT_EQ(run(ids::cuMemsetD8_v2, Payload::of(a, 'f', 3)), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "fff");
  EXPECT_EQ(world.driver.calls("cuStreamSynchronize"), waits + 1);
  EXPECT_EQ(run(ids::cuMemsetD8_v2, Payload::of(a, 'g', 3), 0), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "ggg");
  EXPECT_EQ(run(ids::cuMemsetD8Async, Payload::of(a, 'h', 3, 0), 0), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "ggg");
}

TEST_F(SessionShadowCopies, StagedCopiesBringDownWhenTheyHaveWaited) {
  const std::uint64_t a = variable_of(world.module());
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  std::strcpy(driver(a), "kernel");
  api::CopyRecord record{.device = a, .arena = 4096, .bytes = 8, .stream = world.stream()};
  EXPECT_EQ(run(ids::cuMemcpyDtoHAsync_v2, Payload::record(record), 0), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "");
  record.then_wait = 1;
  EXPECT_EQ(run(ids::cuMemcpyDtoHAsync_v2, Payload::record(record), 0), CUDA_SUCCESS);
  EXPECT_STREQ(arena(), "kernel");
}

TEST_F(SessionShadowCopies, AFaultEndsTheCopiesUntilAReset) {
  const std::uint64_t library = world.library(), a = find(ids::cuLibraryGetManaged, library, "shared").address;
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  world.driver.fail_next("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  std::strcpy(driver(a), "kernel");
  EXPECT_EQ(run(ids::cuCtxSynchronize, {}), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  wait();
  EXPECT_STREQ(arena(), "");
  EXPECT_EQ(run(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)), CUDA_SUCCESS);
  wait();
  EXPECT_STREQ(arena(), "kernel");
}

// ---- ends ----------------------------------------------------------------------------------------------------------

TEST_F(SessionShadowCopies, AnUnloadEndsThem) {
  const std::uint64_t module = world.module(), other = world.module();
  const std::uint64_t a = variable_of(module), b = variable_of(other);
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(shadow_copy(b, variable_bytes, 64), CUDA_SUCCESS);
  EXPECT_EQ(run(ids::cuModuleUnload, Payload::of(module)), CUDA_SUCCESS);
  std::strcpy(arena(), "late");
  std::strcpy(arena(64), "other");
  post_launch();
  EXPECT_STREQ(driver(b), "other");
  EXPECT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(ids::cuModuleUnload, Payload::of(other)), CUDA_SUCCESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
}

TEST_F(SessionShadowCopies, AnUnloadThatFailsEndsNone) {
  const std::uint64_t module = world.module(), a = variable_of(module);
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  world.driver.fail_next("cuModuleUnload", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(run(ids::cuModuleUnload, Payload::of(module)), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  std::strcpy(driver(a), "kernel");
  wait();
  EXPECT_STREQ(arena(), "kernel");
  world.driver.fail_next("cuModuleUnload", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(run(ids::cuModuleUnload, Payload::of(module)), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
}

// A context's end also ends the variables of its modules. A library's variables stay while the driver keeps them.
TEST_F(SessionShadowCopies, AResetEndsThoseOfModules) {
  const std::uint64_t library = world.library(), in_library = find(ids::cuLibraryGetManaged, library, "shared").address;
  const std::uint64_t in_module = variable_of(world.module());
  ASSERT_EQ(shadow_copy(in_library, variable_bytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(shadow_copy(in_module, variable_bytes, 64), CUDA_SUCCESS);
  EXPECT_EQ(run(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)), CUDA_SUCCESS);
  std::strcpy(driver(in_library), "kernel");
  wait();
  EXPECT_STREQ(arena(), "kernel");
  EXPECT_EQ(shadow_copy(in_module, variable_bytes, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(ids::cuLibraryUnload, Payload::of(library)), CUDA_SUCCESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  wait();
}

TEST_F(SessionShadowCopies, AResetAfterWhichTheDriverDisagreesEndsThoseOfLibraries) {
  const std::uint64_t a = find(ids::cuLibraryGetManaged, world.library(), "shared").address;
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  world.driver.fail_next("cuLibraryGetManaged", CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(run(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)), CUDA_SUCCESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
}

TEST_F(SessionShadowCopies, WhatALibrarysModuleNamesEndsWithTheLibrary) {
  const std::uint64_t library = world.library(), module = world.next(Handle::Module);
  ASSERT_EQ(world.send(ids::cuLibraryGetModule, Payload::of(library, module)).result, CUDA_SUCCESS);
  const std::uint64_t a = variable_of(module);
  EXPECT_EQ(find(ids::cuLibraryGetManaged, library, "shared").address, a);
  EXPECT_EQ(variable_of(module), a) << "named by the module last";
  ASSERT_EQ(shadow_copy(a, variable_bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(run(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)), CUDA_SUCCESS);
  EXPECT_EQ(run(ids::cuMemsetD8_v2, Payload::of(a, 'f', 3)), CUDA_SUCCESS) << "the module's end is not the variable's";
  EXPECT_STREQ(arena(), "fff");
  EXPECT_EQ(run(ids::cuLibraryUnload, Payload::of(library)), CUDA_SUCCESS);
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  EXPECT_EQ(run(ids::cuMemsetD8_v2, Payload::of(a, 'g', 3)), CUDA_ERROR_INVALID_VALUE);
}

// ---- invalid records -----------------------------------------------------------------------------------------------

TEST_F(SessionShadowCopies, TheReplyNamesManagedMemory) {
  const std::uint64_t module = world.module(), library = world.library();
  EXPECT_EQ(find(ids::cuModuleGetGlobal_v2, module, "shared").managed, 1U);
  EXPECT_EQ(find(ids::cuModuleGetGlobal_v2, module, "counter").managed, 0U);
  EXPECT_EQ(find(ids::cuLibraryGetManaged, library, "shared").bytes, variable_bytes);
  const Payload plain = Payload::record(api::GlobalRecord{library, 8}).text("counter");
  EXPECT_EQ(world.send(ids::cuLibraryGetManaged, plain).result, CUDA_ERROR_NOT_FOUND);
  const Payload of_module = Payload::record(api::GlobalRecord{module, 7}).text("shared");
  EXPECT_EQ(world.send(ids::cuLibraryGetManaged, of_module).result, CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(SessionShadowCopies, OnlyVariablesAreShadowedAndEachByteOnce) {
  const std::uint64_t module = world.module(), a = variable_of(module);
  const std::uint64_t counter = find(ids::cuModuleGetGlobal_v2, module, "counter").address, memory = world.memory(64);
  for (const std::uint64_t wrong : {counter, memory, std::uint64_t{0}, ~std::uint64_t{0}, a - 1, a + 1,
                                    world.session->arena.address(), reinterpret_cast<std::uint64_t>(&world)})
    EXPECT_EQ(shadow_copy(wrong, variable_bytes, 0), CUDA_ERROR_INVALID_VALUE) << std::hex << wrong;
  for (const std::uint64_t length : {std::uint64_t{0}, variable_bytes + 1, api::max_shadowed_bytes + 1})
    EXPECT_EQ(shadow_copy(a, length, 0), CUDA_ERROR_INVALID_VALUE) << length;
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  ASSERT_EQ(shadow_copy(a + 8, 8, 0), CUDA_SUCCESS) << "a part of it";
  EXPECT_EQ(shadow_copy(a + 8, 8, 0), CUDA_SUCCESS) << "the same again";
  EXPECT_EQ(shadow_copy(a + 8, 8, 64), CUDA_ERROR_INVALID_VALUE) << "elsewhere";
  EXPECT_EQ(shadow_copy(a + 15, 2, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shadow_copy(a, 9, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shadow_copy(a + 16, 8, 64), CUDA_SUCCESS);
}

TEST_F(SessionShadowCopies, PlacesOutsideOfTheArenaBreakTheSession) {
  const std::uint64_t a = variable_of(world.module());
  expect_broken({a, ~std::uint64_t{0}, 0}, "as much as there is");
  expect_broken({a, variable_bytes, ring::absent}, "nowhere");
  expect_broken({a, variable_bytes, World::arena_bytes - variable_bytes + 1}, "behind the arena's end");
  expect_broken({a, variable_bytes, ~std::uint64_t{0} - 8}, "beyond all");
  EXPECT_FALSE(world.session->memory.shadow_copies.any());
  EXPECT_EQ(shadow_copy(a, variable_bytes, World::arena_bytes - variable_bytes), CUDA_SUCCESS) << "its last bytes";
}

// ---- bounds --------------------------------------------------------------------------------------------------------

TEST(ShadowCopies, HaveBounds) {
  std::vector<std::byte> variable(api::max_shadowed_bytes + 1), arena(variable.size());
  const auto start = reinterpret_cast<std::uint64_t>(variable.data());
  const auto piece = [&](std::size_t at, std::size_t bytes) { return ring::SharedBytes(arena.data() + at, bytes); };
  ShadowCopies shadow_copies;
  shadow_copies.found({.start = start, .bytes = variable.size(), .owner = 1, .context = 0, .name = "large"});
  for (std::size_t i = 0; i < ShadowCopies::most_pieces; ++i)
    ASSERT_EQ(shadow_copies.add(start + i, i, piece(i, 1)), CUDA_SUCCESS) << i;
  EXPECT_EQ(shadow_copies.add(start + ShadowCopies::most_pieces, 0, piece(0, 1)), CUDA_ERROR_OUT_OF_MEMORY) << "pieces";
  shadow_copies.put_back(shadow_copies.take_of(1));
  EXPECT_EQ(shadow_copies.add(start + ShadowCopies::most_pieces, 0, piece(0, 1)), CUDA_ERROR_OUT_OF_MEMORY)
      << "put back";
  EXPECT_EQ(shadow_copies.take_of(1).size(), 1U);

  shadow_copies.found({.start = start, .bytes = variable.size(), .owner = 1, .context = 0, .name = "large"});
  ASSERT_EQ(shadow_copies.add(start, 0, piece(0, api::max_shadowed_bytes)), CUDA_SUCCESS);
  EXPECT_EQ(shadow_copies.add(start + api::max_shadowed_bytes, 0, piece(0, 1)), CUDA_ERROR_OUT_OF_MEMORY) << "bytes";
}

// The variables are longer than the number of bytes that one step copies.
TEST(ShadowCopies, CopyLongVariables) {
  std::vector<std::byte> variable(100'000), arena(variable.size());
  const auto start = reinterpret_cast<std::uint64_t>(variable.data());
  ShadowCopies shadow_copies;
  shadow_copies.found({.start = start, .bytes = variable.size(), .owner = 1, .context = 0, .name = "long"});
  ASSERT_EQ(shadow_copies.add(start, 0, {arena.data(), arena.size()}), CUDA_SUCCESS);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, std::size_t{99'999}}) {
    variable[at] = std::byte{7};
    shadow_copies.down();
    EXPECT_EQ(arena[at], std::byte{7}) << at;
    arena[at] = std::byte{9};
    shadow_copies.up();
    EXPECT_EQ(variable[at], std::byte{9}) << at;
  }
}

}  // namespace
