// The objects of a session in its worker, looked up by ids of a hostile guest.
#include <gtest/gtest.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "host/session/objects.h"

namespace {

using api::Handle, api::Id;

void* thing(std::uintptr_t n) { return reinterpret_cast<void*>(n); }
constexpr std::uint64_t id(Handle kind, std::uint32_t index, std::uint32_t generation = 0) {
  return Id{kind, index, generation}.value();
}

TEST(SessionObjects, PutFindDrop) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Stream, 5), Handle::Stream, thing(1), {}));
  EXPECT_EQ(o.find(id(Handle::Stream, 5), Handle::Stream), thing(1));
  EXPECT_TRUE(o.drop(id(Handle::Stream, 5)));
  EXPECT_EQ(o.find(id(Handle::Stream, 5), Handle::Stream), nullptr);
  EXPECT_FALSE(o.drop(id(Handle::Stream, 5)));
}

TEST(SessionObjects, AHandleThatComesAgainKeepsItsId) {
  host::Objects o;
  const std::uint64_t first = id(Handle::Function, 5), second = id(Handle::Function, 6);
  EXPECT_EQ(o.put_once(first, Handle::Function, thing(1), {}), first);
  EXPECT_EQ(o.put_once(second, Handle::Function, thing(1), {}), first);
  EXPECT_EQ(o.put_once(second, Handle::Function, thing(2), {}), second);
  // Handles of different kinds may be equal. A dropped object must not be found.
  EXPECT_EQ(o.put_once(id(Handle::Module, 7), Handle::Module, thing(1), {}), id(Handle::Module, 7));
  EXPECT_TRUE(o.drop(second));
  EXPECT_EQ(o.put_once(id(Handle::Function, 8), Handle::Function, thing(2), {}), id(Handle::Function, 8));
  EXPECT_EQ(o.put_once(first, Handle::Function, thing(3), {}), 0u);  // the id is already in use
  EXPECT_EQ(o.put_once(id(Handle::Stream, 9), Handle::Function, thing(4), {}), 0u);
}

TEST(SessionObjects, AreCounted) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Module, 1), Handle::Module, thing(1), {}));
  ASSERT_TRUE(
      o.put(id(Handle::Function, 2), Handle::Function, thing(2), {.context = 0, .owner = id(Handle::Module, 1)}));
  ASSERT_TRUE(o.put(id(Handle::Stream, 3), Handle::Stream, thing(3), {}));
  EXPECT_FALSE(o.put(id(Handle::Event, 3), Handle::Event, thing(4), {}));
  EXPECT_EQ(o.count(), 3u);
  EXPECT_FALSE(o.drop(id(Handle::Event, 3)));
  EXPECT_EQ(o.drop_with_owned(id(Handle::Module, 1)).size(), 2u);
  EXPECT_FALSE(o.drop(id(Handle::Function, 2)));
  EXPECT_EQ(o.count(), 1u);
}

TEST(SessionObjects, OnlyTheVeryIdFinds) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Stream, 5, 3), Handle::Stream, thing(1), {}));
  EXPECT_EQ(o.find(id(Handle::Stream, 5, 2), Handle::Stream), nullptr);  // the generation is stale
  EXPECT_EQ(o.find(id(Handle::Stream, 5, 3), Handle::Event), nullptr);
  EXPECT_EQ(o.find(id(Handle::Event, 5, 3), Handle::Event), nullptr);
  EXPECT_EQ(o.find(id(Handle::Stream, 6, 3), Handle::Stream), nullptr);
  EXPECT_FALSE(o.drop(id(Handle::Stream, 5, 2)));
  EXPECT_FALSE(o.drop(id(Handle::Event, 5, 3)));
  EXPECT_EQ(o.find(id(Handle::Stream, 5, 3), Handle::Stream), thing(1));
}

TEST(SessionObjects, AKernelServesAsAFunction) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Kernel, 1), Handle::Kernel, thing(1), {}));
  EXPECT_EQ(o.find(id(Handle::Kernel, 1), Handle::Function), thing(1));
  EXPECT_EQ(o.find(id(Handle::Kernel, 1), Handle::Module), nullptr);
}

TEST(SessionObjects, AnIndexIsTakenOnceWhateverTheKind) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Stream, 5), Handle::Stream, thing(1), {}));
  EXPECT_FALSE(o.put(id(Handle::Stream, 5), Handle::Stream, thing(2), {}));
  EXPECT_FALSE(o.put(id(Handle::Stream, 5, 1), Handle::Stream, thing(2), {}));
  EXPECT_FALSE(o.put(id(Handle::Event, 5), Handle::Event, thing(2), {}));
  EXPECT_EQ(o.find(id(Handle::Stream, 5), Handle::Stream), thing(1));
}

TEST(SessionObjects, MalformedIdsAreRefused) {
  host::Objects o;
  for (const std::uint64_t value :
       std::vector<std::uint64_t>{0, 1, 2, 15, 16, ~0ULL, 1ULL << 63, 1ULL << 47, id(Handle::Stream, 0),
                                  id(Handle::None, 7), id(Handle::Stream, 7) | 8, id(Handle::Event, 7)}) {
    EXPECT_FALSE(o.put(value, Handle::Stream, thing(1), {})) << value;
    EXPECT_FALSE(o.put(value, Handle::None, thing(1), {})) << value;
    EXPECT_EQ(o.find(value, Handle::Stream), nullptr) << value;
    EXPECT_FALSE(o.drop(value)) << value;
  }
}

TEST(SessionObjects, NobodyOwnsWhatItsKindCannot) {
  host::Objects o;
  const std::uint64_t stream_id = id(Handle::Stream, 1), module = id(Handle::Module, 2);
  ASSERT_TRUE(o.put(stream_id, Handle::Stream, thing(1), {}));
  ASSERT_TRUE(o.put(module, Handle::Module, thing(2), {}));
  EXPECT_FALSE(o.put(id(Handle::Function, 3), Handle::Function, thing(3), {0, stream_id}));
  EXPECT_FALSE(o.put(id(Handle::Event, 3), Handle::Event, thing(3), {0, module}));
  EXPECT_TRUE(o.put(id(Handle::Function, 3), Handle::Function, thing(3), {0, module}));
}

TEST(SessionObjects, TheLargestIndexOfTheGuest) {
  host::Objects o;
  const std::uint64_t last = id(Handle::Event, Id::first_of_worker - 1, Id::generations - 1);
  ASSERT_TRUE(o.put(last, Handle::Event, thing(9), {}));
  EXPECT_EQ(o.find(last, Handle::Event), thing(9));
}

TEST(SessionObjects, IndicesOfTheWorkerAreNotTheGuestsToChoose) {
  host::Objects o;
  for (const std::uint32_t index : {Id::first_of_worker, Id::first_of_worker + 1, Id::max_index}) {
    const std::uint64_t proposed = id(Handle::Event, index), function = id(Handle::Function, index);
    EXPECT_FALSE(o.put(proposed, Handle::Event, thing(1), {})) << index;
    EXPECT_EQ(o.put_once(function, Handle::Function, thing(1), {}), 0u) << index;
    EXPECT_EQ(o.find(proposed, Handle::Event), nullptr) << index;
    EXPECT_FALSE(o.drop(proposed)) << index;
    EXPECT_EQ(o.drop_with_owned(proposed).size(), 1u) << index;
  }
  EXPECT_EQ(o.count(), 0u);
}

TEST(SessionObjects, WhatIsOwnedGoesWithItsOwner) {
  host::Objects o;
  const std::uint64_t library = id(Handle::Library, 1), kernel = id(Handle::Kernel, 2), f = id(Handle::Function, 3),
                      other = id(Handle::Function, 4);
  ASSERT_TRUE(o.put(library, Handle::Library, thing(1), {}));
  ASSERT_TRUE(o.put(kernel, Handle::Kernel, thing(2), {0, library}));
  ASSERT_TRUE(o.put(f, Handle::Function, thing(3), {0, kernel}));
  ASSERT_TRUE(o.put(other, Handle::Function, thing(4), {0, 0}));
  EXPECT_EQ(o.drop_with_owned(library), (std::vector<std::uint64_t>{library, kernel, f}));
  for (const std::uint64_t gone : {library, kernel, f}) EXPECT_FALSE(o.drop(gone));
  EXPECT_EQ(o.find(other, Handle::Function), thing(4));
}

TEST(SessionObjects, WhoseOwnerGoesAloneBelongsToNobody) {
  host::Objects o;
  const std::uint64_t module = id(Handle::Module, 1), f = id(Handle::Function, 2), again = id(Handle::Module, 1, 1);
  ASSERT_TRUE(o.put(module, Handle::Module, thing(1), {}));
  ASSERT_TRUE(o.put(f, Handle::Function, thing(2), {0, module}));
  ASSERT_TRUE(o.drop(module));
  ASSERT_TRUE(o.put(again, Handle::Module, thing(3), {}));
  EXPECT_EQ(o.drop_with_owned(again), std::vector<std::uint64_t>{again}) << "the index is the same, the owner is not";
  EXPECT_EQ(o.find(f, Handle::Function), thing(2));
  EXPECT_EQ(o.drop_context(0), std::vector<std::uint64_t>{f});
}

TEST(SessionObjects, OneOfManyLeavesItsOwner) {
  host::Objects o;
  const std::uint64_t library = id(Handle::Library, 1);
  ASSERT_TRUE(o.put(library, Handle::Library, thing(1), {}));
  for (std::uint32_t i = 2; i <= 6; ++i)
    ASSERT_TRUE(o.put(id(Handle::Kernel, i), Handle::Kernel, thing(i), {0, library}));
  // The last, the middle and the first object of the list.
  for (const std::uint32_t i : {2u, 4u, 6u}) ASSERT_TRUE(o.drop(id(Handle::Kernel, i)));
  ASSERT_TRUE(o.put(id(Handle::Kernel, 4, 1), Handle::Kernel, thing(9), {}));  // the object belongs to another owner
  auto gone = o.drop_with_owned(library);
  std::sort(gone.begin() + 1, gone.end());
  EXPECT_EQ(gone, (std::vector<std::uint64_t>{library, id(Handle::Kernel, 3), id(Handle::Kernel, 5)}));
  EXPECT_EQ(o.find(id(Handle::Kernel, 4, 1), Handle::Kernel), thing(9));
  EXPECT_EQ(o.count(), 1u);
}

// Two channels end related objects while a third channel makes more.
TEST(SessionObjects, FamiliesBesideChanges) {
  host::Objects o;
  std::atomic<bool> stop{false};
  std::thread functions([&] {
    while (!stop)
      for (std::uint32_t i = 2; i <= 9; ++i)
        o.put(id(Handle::Function, i), Handle::Function, thing(i), {0, id(Handle::Module, 1)});
  });
  std::thread some([&] {
    while (!stop)
      for (std::uint32_t i = 2; i <= 9; i += 3) o.drop(id(Handle::Function, i));
  });
  for (int round = 0; round < 5'000; ++round) {
    ASSERT_TRUE(o.put(id(Handle::Module, 1), Handle::Module, thing(1), {}));
    std::this_thread::yield();
    const auto gone = o.drop_with_owned(id(Handle::Module, 1));
    ASSERT_EQ(gone.front(), id(Handle::Module, 1));
    ASSERT_LE(gone.size(), 9u);
  }
  stop = true;
  functions.join(), some.join();
  o.drop_context(0);
  EXPECT_EQ(o.count(), 0u);
}

// Returns the processor time, in seconds, to drop an owner with `owned` objects.
double time_to_drop(std::uint32_t owned) {
  host::Objects o;
  const std::uint64_t library = id(Handle::Library, 1);
  o.put(library, Handle::Library, thing(1), {});
  for (std::uint32_t i = 0; i < owned; ++i)
    o.put(id(Handle::Kernel, 2 + i), Handle::Kernel, thing(2 + i), {0, library});
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  EXPECT_EQ(o.drop_with_owned(library).size(), owned + 1u);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-9;
}

// With 100 times as many objects, a linear search would take 10,000 times as long, and cache misses alone take 250
// times as long. The bound is far from both, even on a busy machine.
TEST(SessionObjectsTiming, AnOwnerOfManyIsDroppedInTheirTime) {
  double few = 1, many = 60;
  for (int run = 0; run < 3; ++run) {
    few = std::min(few, time_to_drop(1'000));
    many = std::min(many, time_to_drop(100'000));
  }
  EXPECT_LE(many, 1'500 * few) << "1,000: " << few * 1e3 << " ms, 100,000: " << many * 1e3 << " ms";
}

TEST(SessionObjects, AContextTakesItsOwnAlong) {
  host::Objects o;
  ASSERT_TRUE(o.put(id(Handle::Stream, 1), Handle::Stream, thing(1), {.context = 0, .owner = 0}));
  ASSERT_TRUE(o.put(id(Handle::Stream, 2), Handle::Stream, thing(2), {.context = 1, .owner = 0}));
  ASSERT_TRUE(o.put(id(Handle::Library, 3), Handle::Library, thing(3), {.context = 0, .owner = 0}));
  ASSERT_TRUE(o.put(id(Handle::Kernel, 4), Handle::Kernel, thing(4), {.context = 0, .owner = id(Handle::Library, 3)}));
  const std::uint64_t module = id(Handle::Module, 5), function = id(Handle::Function, 6);
  ASSERT_TRUE(o.put(module, Handle::Module, thing(5), {.context = 0, .owner = 0}));
  // Another owner has found the function.
  ASSERT_TRUE(o.put(function, Handle::Function, thing(6), {.context = 1, .owner = module}));
  const auto gone = o.drop_context(0);
  for (const std::uint64_t ended : {id(Handle::Stream, 1), module, function})
    EXPECT_NE(std::find(gone.begin(), gone.end(), ended), gone.end()) << ended;
  EXPECT_EQ(o.find(function, Handle::Function), nullptr);
  EXPECT_EQ(o.find(id(Handle::Stream, 1), Handle::Stream), nullptr);
  EXPECT_EQ(o.find(id(Handle::Stream, 2), Handle::Stream), thing(2));
  EXPECT_EQ(o.find(id(Handle::Library, 3), Handle::Library), thing(3));
  EXPECT_EQ(o.find(id(Handle::Kernel, 4), Handle::Kernel), thing(4));
}

// A lookup finds a new object of another channel complete, or not at all.
TEST(SessionObjects, LookupsBesideChanges) {
  host::Objects o;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop)
      for (std::uint32_t i = 1; i <= 8; ++i) {
        void* found = o.find(id(Handle::Event, i, 1), Handle::Event);
        if (found != nullptr && found != thing(i)) ADD_FAILURE() << "index " << i << " has " << found;
      }
  });
  for (int round = 0; round < 20'000; ++round)
    for (std::uint32_t i = 1; i <= 8; ++i) {
      ASSERT_TRUE(o.put(id(Handle::Event, i, 1), Handle::Event, thing(i), {}));
      ASSERT_TRUE(o.drop(id(Handle::Event, i, 1)));
    }
  stop = true;
  reader.join();
}

// ---- two channels at one index: a signal handler acts as the second, between any two instructions -------------------

constexpr std::uint64_t stream = id(Handle::Stream, 1, 1), event = id(Handle::Event, 1, 1);

class Interrupted : public testing::Test {
 protected:
  explicit Interrupted(void (*other)(int)) {
    objects = std::make_unique<host::Objects>();
    iterations = 0, put_meanwhile = false;
    struct sigaction action {};
    action.sa_handler = other;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{.it_interval = {0, 50}, .it_value = {0, 50}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interrupted() override {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
  }
  bool goes_on() const { return iterations < 2000 && std::chrono::steady_clock::now() < end_; }

  static bool put(std::uint64_t which, Handle kind) {
    return objects->put(which, kind, thing(static_cast<std::uintptr_t>(kind)), {});
  }
  // Returns null, or the handle stored for this kind.
  static bool fits(Handle kind) {
    const void* found = objects->find(id(kind, 1, 1), kind);
    return found == nullptr || found == thing(static_cast<std::uintptr_t>(kind));
  }
  static inline std::unique_ptr<host::Objects> objects;
  static inline std::atomic<int> iterations;
  static inline std::atomic<bool> put_meanwhile;

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(2);
};

class InterruptedFind : public Interrupted {
 protected:
  InterruptedFind()
      : Interrupted([](int) {
          ++iterations;
          if (objects->drop(stream)) {
            put(event, Handle::Event);
          } else if (objects->drop(event)) {
            put(stream, Handle::Stream);
          }
        }) {}
};

TEST_F(InterruptedFind, GivesNoHandleOfAnotherKind) {
  put(stream, Handle::Stream);
  int wrong = 0;
  while (goes_on())
    for (int i = 0; i < 100; ++i) wrong += !fits(Handle::Stream) + !fits(Handle::Event);
  EXPECT_EQ(wrong, 0);
}

class InterruptedPut : public Interrupted {
 protected:
  InterruptedPut()
      : Interrupted([](int) {
          ++iterations;
          if (put(event, Handle::Event)) put_meanwhile = true;
        }) {}
};

TEST_F(InterruptedPut, IsDoneByOneOfTheTwo) {
  int both = 0, wrong = 0;
  while (goes_on())
    for (int i = 0; i < 100; ++i) {
      objects->drop(event);
      put_meanwhile = false;
      both += put(stream, Handle::Stream) && put_meanwhile;
      wrong += !fits(Handle::Stream) + !fits(Handle::Event);
      objects->drop(stream);
    }
  EXPECT_EQ(both, 0);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
