#include "ring/abi/context_storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/unit/abi/fake_backend.h"

namespace {

std::vector<std::tuple<CUcontext, void*, void*>> destroyed;
void record(CUcontext context, void* key, void* value) { destroyed.emplace_back(context, key, value); }

class ContextStorage : public testing::Test {
 protected:
  void SetUp() override {
    fake::reset();
    fake::contexts.push_back(other_context);
    destroyed.clear();
  }
  void TearDown() override {
    cuabi::storage_release(fake::primary);
    cuabi::storage_release(other_context);
  }
  static void* address(std::uintptr_t number) { return reinterpret_cast<void*>(number); }
  static inline const CUcontext other_context = fake::handle<CUcontext>(0x2000);
  void* value_ = address(0xdead);
};

TEST_F(ContextStorage, missing_key_is_an_invalid_handle_and_leaves_the_value) {
  EXPECT_EQ(cuabi::storage_get(&value_, nullptr, address(1)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(value_, address(0xdead));
  EXPECT_EQ(cuabi::storage_delete(nullptr, address(1)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(ContextStorage, second_put_is_refused_and_the_first_value_stays) {
  EXPECT_EQ(cuabi::storage_put(nullptr, address(1), address(10), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuabi::storage_put(nullptr, address(1), address(20), nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuabi::storage_get(&value_, fake::primary, address(1)), CUDA_SUCCESS);
  EXPECT_EQ(value_, address(10));
}

TEST_F(ContextStorage, null_and_all_ones_mean_the_current_context) {
  ASSERT_EQ(cuabi::storage_put(fake::primary, address(1), address(10), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuabi::storage_get(&value_, fake::handle<CUcontext>(UINTPTR_MAX), address(1)), CUDA_SUCCESS);
  EXPECT_EQ(value_, address(10));
  fake::current = nullptr;
  EXPECT_EQ(cuabi::storage_get(&value_, nullptr, address(1)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuabi::storage_put(nullptr, address(2), address(1), nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(ContextStorage, contexts_do_not_share_keys) {
  ASSERT_EQ(cuabi::storage_put(fake::primary, address(1), address(10), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuabi::storage_get(&value_, other_context, address(1)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuabi::storage_put(other_context, address(1), address(20), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuabi::storage_get(&value_, other_context, address(1)), CUDA_SUCCESS);
  EXPECT_EQ(value_, address(20));
}

TEST_F(ContextStorage, delete_does_not_run_the_destructor_and_the_end_does_once) {
  ASSERT_EQ(cuabi::storage_put(nullptr, address(1), address(10), record), CUDA_SUCCESS);
  ASSERT_EQ(cuabi::storage_put(nullptr, address(2), address(20), record), CUDA_SUCCESS);
  ASSERT_EQ(cuabi::storage_put(nullptr, address(3), address(30), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuabi::storage_delete(nullptr, address(1)), CUDA_SUCCESS);
  EXPECT_TRUE(destroyed.empty());
  cuabi::storage_release(fake::primary);
  ASSERT_EQ(destroyed.size(), 1U);
  EXPECT_EQ(destroyed[0], std::make_tuple(fake::primary, address(2), address(20)));
  cuabi::storage_release(fake::primary);
  EXPECT_EQ(destroyed.size(), 1U);
}

TEST_F(ContextStorage, unknown_context_and_missing_driver) {
  EXPECT_EQ(cuabi::storage_put(fake::handle<CUcontext>(0x5555), address(1), address(1), nullptr),
            CUDA_ERROR_INVALID_CONTEXT);
  fake::ready = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(cuabi::storage_get(&value_, nullptr, address(1)), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuabi::storage_put(nullptr, address(1), address(1), nullptr), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuabi::storage_delete(nullptr, address(1)), CUDA_ERROR_NOT_INITIALIZED);
}

// A reader must never see another key's value, even while entries are reused.
TEST_F(ContextStorage, readers_see_only_their_own_value) {
  constexpr std::uintptr_t stable = 1;
  ASSERT_EQ(cuabi::storage_put(fake::primary, address(stable), address(stable), nullptr), CUDA_SUCCESS);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uintptr_t round = 0; !stop.load(); ++round) {
      const std::uintptr_t key = 2 + round % 3;
      cuabi::storage_put(fake::primary, address(key), address(key), nullptr);
      cuabi::storage_delete(fake::primary, address(2 + (round + 1) % 3));
    }
  });
  for (int round = 0; round < 200'000; ++round) {
    const std::uintptr_t key = 1 + static_cast<std::uintptr_t>(round) % 4;
    void* value = nullptr;
    const CUresult result = cuabi::storage_get(&value, fake::primary, address(key));
    if (key == stable) {
      ASSERT_EQ(result, CUDA_SUCCESS);
    }
    if (result == CUDA_SUCCESS) {
      ASSERT_EQ(value, address(key));
    }
  }
  stop.store(true);
  writer.join();
}

}  // namespace
