// What the guest knows of its handles and of device memory. Without a session every posted call counts as executed.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>
#include <vector>

#include "guest/objects/objects.h"
#include "guest/process/context.h"
#include "guest/session/order.h"
#include "ring/layout.h"
#include "tests/unit/under_tsan.h"

namespace {

using api::Handle, api::Id;
using guest::FunctionInfo, guest::Object, guest::Use;

const void* handle_of(const Object* object) { return reinterpret_cast<const void*>(object->id.load()); }

TEST(Use, KeepsChannelAndPosition) {
  EXPECT_EQ((Use{0, 1}.packed()), (1ULL << 56) | 1);
  for (const Use use : {Use{0, 1}, Use{15, 123456789}, Use{3, (1ULL << 56) - 1}}) {
    EXPECT_EQ(Use::of(use.packed()).channel, use.channel);
    EXPECT_EQ(Use::of(use.packed()).position, use.position);
  }
}

TEST(Use, IsExecutedWithoutASession) {
  EXPECT_TRUE(guest::executed({}));
  EXPECT_TRUE(guest::executed({3, 1000}));
}

guest::Context context0, context1;

TEST(GuestObjects, FindsWhatItMadeAndNothingElse) {
  guest::Objects objects;
  Object* stream = objects.create(Handle::Stream, &context1);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(objects.find(handle_of(stream), Handle::Stream), stream);
  EXPECT_EQ(objects.find(handle_of(stream), Handle::Event), nullptr);
  EXPECT_EQ(stream->context, &context1);
  const auto value = reinterpret_cast<std::uint64_t>(handle_of(stream));
  for (const std::uint64_t other :
       std::vector<std::uint64_t>{0, 1, 2, value + 1, value + 16, value | 1ULL << 47, value + (1ULL << 24), ~0ULL,
                                  Id{Handle::Stream, Id::max_index, 0}.value()})
    EXPECT_EQ(objects.find(reinterpret_cast<const void*>(other), Handle::Stream), nullptr) << other;
}

TEST(GuestObjects, AKernelIsFoundAsAFunction) {
  guest::Objects objects;
  const Object* kernel = objects.create(Handle::Kernel, &context0);
  EXPECT_EQ(objects.find(handle_of(kernel), Handle::Function), kernel);
  EXPECT_EQ(objects.find(handle_of(kernel), Handle::Kernel), kernel);
  const Object* function = objects.create(Handle::Function, &context0);
  EXPECT_EQ(objects.find(handle_of(function), Handle::Kernel), nullptr);
}

TEST(GuestObjects, AStaleHandleIsKnownAsOne) {
  guest::Objects objects;
  std::set<const void*> seen;
  const void* before = nullptr;
  for (int round = 0; round < 1000; ++round) {
    Object* object = objects.create(Handle::Event, &context0);
    ASSERT_NE(object, nullptr);
    EXPECT_TRUE(seen.insert(handle_of(object)).second) << "a handle came twice";
    EXPECT_EQ(objects.find(before, Handle::Event), nullptr);
    before = handle_of(object);
    objects.retire(*object, {0, 1});
    EXPECT_EQ(objects.find(before, Handle::Event), nullptr);
  }
  EXPECT_LE(Id::of(reinterpret_cast<std::uint64_t>(before)).index, 2u);  // one index served them all
}

TEST(GuestObjects, NewObjectsRememberNothingOfOldOnes) {
  guest::Objects objects;
  Object* old = objects.create(Handle::Stream, &context1);
  old->flags = 1, old->priority = -2, old->owner = 99;
  guest::remember(*old, {1, 5});
  objects.retire(*old, {});
  Object* fresh = objects.create(Handle::Stream, &context0);
  ASSERT_EQ(fresh, old);
  EXPECT_EQ(fresh->flags, 0u);
  EXPECT_EQ(fresh->priority, 0);
  EXPECT_EQ(fresh->owner, 0u);
  EXPECT_EQ(fresh->context, &context0);
  EXPECT_TRUE(fresh->last_use.await_others(7, [](guest::Use) { return false; }));
}

// A use whose forerunner was not seen to end: whoever comes next waits for every channel, until that has succeeded.
TEST(GuestObjects, UsesOfWhichNoneIsKnownToBeExecutedAreAllAwaited) {
  guest::LastUse last;
  const auto yes = [](guest::Use) { return true; };
  std::vector<std::uint32_t> awaited;
  const auto note = [&](bool answer) {
    return [&awaited, answer](guest::Use use) { return awaited.push_back(use.channel), answer; };
  };
  last.remember({1, 5}, yes);
  last.remember({2, 9}, note(false));
  EXPECT_EQ(last.now(), guest::LastUse::several);
  for (const std::uint32_t mine : {1u, 2u, 3u}) EXPECT_FALSE(last.await_others(mine, note(false))) << mine;
  last.remember({3, 1}, note(false));
  EXPECT_EQ(last.now(), guest::LastUse::several);
  EXPECT_EQ(awaited, (std::vector<std::uint32_t>{1, 254, 254, 254, 254}));
  last.remember({3, 2}, yes);
  EXPECT_EQ(last.now(), (guest::Use{3, 2}.packed()));
  EXPECT_TRUE(last.await_others(3, note(false)));
}

TEST(GuestObjects, WhatEndsWithAContext) {
  guest::Objects objects;
  Object* a = objects.create(Handle::Stream, &context0);
  Object* b = objects.create(Handle::Event, &context0);
  Object* c = objects.create(Handle::Stream, &context0);
  objects.create(Handle::Stream, &context1);
  objects.create(Handle::Library, &context0);
  objects.create(Handle::Kernel, &context0);
  objects.retire(*a, {});
  EXPECT_EQ(objects.of_context(context0), (std::vector<Object*>{b, c}));
}

TEST(GuestObjects, WhatGoesWithItsOwner) {
  guest::Objects objects;
  Object* library = objects.create(Handle::Library, &context0);
  Object* other = objects.create(Handle::Library, &context0);
  Object* kernels[3] = {};
  for (Object*& k : kernels) objects.give(*(k = objects.create(Handle::Kernel, &context0)), *library);
  Object* function = objects.create(Handle::Function, &context0);
  objects.give(*function, *kernels[1]);
  EXPECT_EQ(function->owner, kernels[1]->id.load());
  EXPECT_EQ(objects.owned_by(*library), (std::vector<Object*>{kernels[2], kernels[1], kernels[0], function}));
  EXPECT_TRUE(objects.owned_by(*other).empty());
  objects.retire(*kernels[2], {});
  objects.retire(*kernels[0], {});
  EXPECT_EQ(objects.owned_by(*library), (std::vector<Object*>{kernels[1], function}));
  objects.retire(*kernels[1], {});
  EXPECT_TRUE(objects.owned_by(*library).empty());
  EXPECT_TRUE(objects.owned_by(*function).empty());
}

double time_to_drop(std::size_t owned) {
  guest::Objects objects;
  Object* library = objects.create(Handle::Library, &context0);
  for (std::size_t i = 0; i < owned; ++i) objects.give(*objects.create(Handle::Kernel, &context0), *library);
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  const std::vector<Object*> all = objects.owned_by(*library);
  for (Object* o : all) objects.retire(*o, {});
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  EXPECT_EQ(all.size(), owned);
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-9;
}

TEST(GuestObjects, AnOwnerOfManyIsDroppedInTheirTime) {
  double few = 1, many = 1;
  for (int run = 0; run < 5; ++run) {
    few = std::min(few, time_to_drop(10'000));
    many = std::min(many, time_to_drop(100'000));
  }
  EXPECT_LE(many, 15 * few) << "10,000: " << few * 1e3 << " ms, 100,000: " << many * 1e3 << " ms";
}

TEST(GuestObjects, ThreadsGetDifferentObjects) {
  guest::Objects objects;
  constexpr int threads = 4, each = 2000;
  std::vector<std::vector<const void*>> made(threads);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        Object* o = objects.create(Handle::Event, &context0);
        made[static_cast<std::size_t>(t)].push_back(handle_of(o));
        if (objects.find(handle_of(o), Handle::Event) != o) made[static_cast<std::size_t>(t)].clear();
        if (i % 2 == 0) objects.retire(*o, {});
      }
    });
  for (std::thread& thread : all) thread.join();
  std::set<const void*> distinct;
  for (const auto& handles : made) {
    EXPECT_EQ(handles.size(), static_cast<std::size_t>(each));
    distinct.insert(handles.begin(), handles.end());
  }
  EXPECT_EQ(distinct.size(), static_cast<std::size_t>(threads * each));
}

TEST(FunctionInfo, AShapeIsCertainOnceItWasAccepted) {
  FunctionInfo demanding;
  demanding.max_threads = 64;
  EXPECT_FALSE(demanding.accepts(32, 2, 1));
  demanding.learn(32, 2, 1, 0);
  EXPECT_TRUE(demanding.accepts(32, 2, 1));
  EXPECT_FALSE(demanding.accepts(64, 1, 1));
  demanding.learn(32, 2, 1, 0);
  EXPECT_FALSE(demanding.accepts(2, 32, 1));
  demanding.learn(64, 1, 1, 0);  // two shapes: it demands none
  EXPECT_TRUE(demanding.accepts(2, 32, 1));
}

TEST(FunctionInfo, WhatWasAcceptedRaisesTheLimitOfSharedMemory) {
  FunctionInfo info;
  info.max_dynamic_shared = 100;
  info.learn(256, 1, 1, 50);
  EXPECT_EQ(info.max_dynamic_shared, 100u);
  info.learn(256, 1, 1, 200);
  EXPECT_EQ(info.max_dynamic_shared, 200u);
}

TEST(Allocations, AreFoundByAnyByteInside) {
  guest::Allocations a;
  a.add({.start = 1000, .bytes = 100, .id = 1, .owner = 0, .context = &context0});
  a.add({.start = 1100, .bytes = 1, .id = 2, .owner = 0, .context = &context1});
  EXPECT_EQ(a.find(1000)->id, 1u);
  EXPECT_EQ(a.find(1099)->id, 1u);
  EXPECT_EQ(a.find(1100)->id, 2u);
  EXPECT_FALSE(a.find(1101));
  EXPECT_FALSE(a.find(999));
  EXPECT_FALSE(a.find(~0ULL));
  EXPECT_TRUE(a.contains(1000, 100));
  EXPECT_TRUE(a.contains(1050, 50));
  EXPECT_FALSE(a.contains(1050, 51));  // the neighbour is another allocation
  EXPECT_FALSE(a.contains(1000, ~0ULL));
}

TEST(Allocations, AStartIsTakenOnceAndGlobalsNever) {
  guest::Allocations a;
  a.add({.start = 1000, .bytes = 100});
  a.add({.start = 5000, .bytes = 100, .id = 0, .owner = 42});
  EXPECT_FALSE(a.take(1001));
  EXPECT_TRUE(a.take(1000));
  EXPECT_FALSE(a.take(1000));
  EXPECT_FALSE(a.take(5000));
  EXPECT_TRUE(a.contains(5000, 100));
  a.drop_owned(41);
  EXPECT_TRUE(a.contains(5000, 100));
  a.drop_owned(42);
  EXPECT_FALSE(a.contains(5000, 100));
}

TEST(Allocations, AResetDropsADevicesAllocationsAndNoGlobals) {
  guest::Allocations a;
  a.add({.start = 1000, .bytes = 10, .id = 0, .owner = 0, .context = &context0});
  a.add({.start = 2000, .bytes = 10, .id = 0, .owner = 0, .context = &context1});
  a.add({.start = 3000, .bytes = 10, .id = 0, .owner = 7, .context = &context0});
  a.drop_all(context0);
  EXPECT_FALSE(a.find(1000));
  EXPECT_TRUE(a.find(2000));
  EXPECT_TRUE(a.find(3000));
}

// ---- reservations --------------------------------------------------------------------------------------------------

// A stretch of address space that is free now.
std::uint64_t free_place(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  munmap(at, bytes);
  return reinterpret_cast<std::uint64_t>(at);
}

bool is_free(std::uint64_t at) {
  void* wanted = reinterpret_cast<void*>(at);
  void* got = mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) munmap(got, 4096);
  return got == wanted;
}

TEST(Reservations, KeepTheRangeFromThisProcess) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  ASSERT_TRUE(r.reserve(at + 100, 5000));  // in whole pages
  EXPECT_FALSE(is_free(at));
  EXPECT_FALSE(is_free(at + 4096));
  EXPECT_TRUE(is_free(at + 8192));
}

TEST(Reservations, CollideWithWhatTheProcessHas) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  void* mine = mmap(reinterpret_cast<void*>(at + 65536), 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(mine, reinterpret_cast<void*>(at + 65536));
  *static_cast<char*>(mine) = 42;
  EXPECT_FALSE(r.reserve(at, 1 << 20));
  EXPECT_EQ(*static_cast<char*>(mine), 42);  // not mapped over
  EXPECT_TRUE(is_free(at));                  // and nothing is left behind
  EXPECT_TRUE(r.reserve(at, 65536));
  EXPECT_FALSE(r.reserve(at, 65537));
  munmap(mine, 4096);
  EXPECT_TRUE(r.reserve(at, 1 << 20));
}

TEST(Reservations, OverlappingAndAdjacentRangesAreOurs) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  ASSERT_TRUE(r.reserve(at + 16384, 8192));
  EXPECT_TRUE(r.reserve(at + 16384, 8192));  // again: the driver gives the same addresses after a free
  EXPECT_TRUE(r.reserve(at + 16384, 4096));
  EXPECT_TRUE(r.reserve(at + 24576, 4096));   // adjacent
  EXPECT_TRUE(r.reserve(at + 20480, 16384));  // from the middle over the end
  EXPECT_TRUE(r.reserve(at, 65536));          // around all of them
  EXPECT_FALSE(is_free(at));
  EXPECT_FALSE(is_free(at + 61440));
  EXPECT_TRUE(is_free(at + 65536));
}

TEST(Reservations, NothingTakesAPage) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 16);
  ASSERT_TRUE(r.reserve(at, 0));
  EXPECT_FALSE(is_free(at));
}

TEST(Reservations, AddressesThatAreNonsenseAreRefused) {
  guest::Reservations r;
#ifndef IVGPU_UNDER_TSAN  // which maps at 0 what is asked for outside of all address space
  EXPECT_FALSE(r.reserve(1ULL << 62, 4096));
#endif
  EXPECT_FALSE(r.reserve(~0ULL - 4096, 4096));
  EXPECT_FALSE(r.reserve(~0ULL, 1 << 20));
  EXPECT_FALSE(r.reserve(0x10000000000, ~0ULL));
}

}  // namespace
