// The guest's table of objects. Without a session every posted call counts as executed.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>
#include <vector>

#include "guest/objects/objects.h"
#include "guest/process/context.h"
#include "guest/session/order.h"
#include "ring/layout/layout.h"

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
  for (const std::uint64_t other : std::vector<std::uint64_t>{0, 1, 2, value + 1, value + 16, value | 1ULL << 47,
                                                              value + (1ULL << Id::generation_at), ~0ULL,
                                                              Id{Handle::Stream, Id::max_index, 0}.value()})
    EXPECT_EQ(objects.find(reinterpret_cast<const void*>(other), Handle::Stream), nullptr) << other;
}

// The worker allocates the other half of the indices. Looking up an index of that half finds nothing and reads no
// memory after the table.
TEST(GuestObjects, IndicesAreOfTheGuestsHalf) {
  guest::Objects objects;
  for (const std::uint32_t index : {Id::first_of_worker, Id::max_index}) {
    const std::uint64_t value = Id{Handle::Event, index, 0}.value();
    EXPECT_EQ(objects.find(reinterpret_cast<const void*>(value), Handle::Event), nullptr);
  }
  std::uint64_t made = 0;
  Object* last = nullptr;
  while (Object* object = objects.create(Handle::Event, 0)) last = object, ++made;
  EXPECT_EQ(made, Id::first_of_worker - 1);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(Id::of(last->id).index, Id::first_of_worker - 1);
  objects.retire(*last, {});
  EXPECT_EQ(objects.create(Handle::Event, 0), last) << "one that is free again";
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
  EXPECT_LE(Id::of(reinterpret_cast<std::uint64_t>(before)).index, 2u);  // all objects reused one index
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

// If the guest does not know that an earlier use has ended, the next user of the object waits for all channels until
// such a wait succeeds.
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

// A launch does not name the events that its graph records. A call that names an event is therefore not always the
// event's last use.
TEST(GuestObjects, AllChannelsAreAwaitedForWhatGraphsUseWhateverNamesItNext) {
  guest::LastUse last;
  std::vector<std::uint32_t> awaited;
  const auto note = [&](guest::Use use) { return awaited.push_back(use.channel), true; };
  EXPECT_TRUE(last.await_others(1, note));
  last.used_by_graphs();
  EXPECT_EQ(last.now(), guest::LastUse::several);
  EXPECT_TRUE(last.await_others(1, note));
  last.remember({1, 5}, note);
  EXPECT_EQ(last.now(), guest::LastUse::several);
  EXPECT_TRUE(last.await_others(1, note));
  last.remember({2, 9}, note);  // forgets the use by channel 1
  EXPECT_TRUE(last.await_others(2, note));
  EXPECT_EQ(awaited, (std::vector<std::uint32_t>{254, 254, 1, 254}));
  last.forget();
  EXPECT_EQ(last.now(), 0u);
  EXPECT_TRUE(last.await_others(1, note));
  EXPECT_EQ(awaited.size(), 4u);
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

TEST(GuestObjectsTiming, AnOwnerOfManyIsDroppedInTheirTime) {
  double few = 1, many = 60;
  for (int run = 0; run < 3; ++run) {
    few = std::min(few, time_to_drop(1'000));
    many = std::min(many, time_to_drop(100'000));
  }
  // 100 times as many objects do not fit into the cache. A linear search would take 10,000 times as long. The bound is
  // far from both, even on a busy machine.
  EXPECT_LE(many, 1'500 * few) << "1,000: " << few * 1e3 << " ms, 100,000: " << many * 1e3 << " ms";
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
  demanding.learn(64, 1, 1, 0);  // two different shapes, so the kernel requires neither
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

}  // namespace
