// Tests the table of texture and surface objects: the numbers, and concurrent use by many threads.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/unit/simgpu/texture_fixture.h"

namespace simgpu {
namespace {

Texture some_texture() { return texture_of(floats_of(Geometry::D1, {1}, {1})); }
Surface some_surface() { return {floats_of(Geometry::D1, {1}, {1})}; }

TEST(TextureTable, ANumberNamesOneObjectOfOneKind) {
  TextureTable table;
  const std::uint64_t texture = table.insert(some_texture());
  const std::uint64_t surface = table.insert(some_surface());
  EXPECT_NE(texture, 0u);
  EXPECT_NE(texture, surface);
  EXPECT_NE(table.texture(texture), nullptr);
  EXPECT_EQ(table.surface(texture), nullptr);
  EXPECT_NE(table.surface(surface), nullptr);
  EXPECT_EQ(table.texture(surface), nullptr);
  EXPECT_FALSE(table.remove_texture(surface));
  EXPECT_FALSE(table.remove_surface(texture));
  EXPECT_TRUE(table.remove_texture(texture));
  EXPECT_FALSE(table.remove_texture(texture));
  EXPECT_EQ(table.texture(texture), nullptr);
  EXPECT_TRUE(table.remove_surface(surface));
}

TEST(TextureTable, NumbersAreNotGivenOutAgain) {
  TextureTable table;
  std::set<std::uint64_t> seen{0};
  for (int k = 0; k < 1000; ++k) {
    const std::uint64_t number = table.insert(some_texture());
    EXPECT_TRUE(seen.insert(number).second);
    EXPECT_TRUE(table.remove_texture(number));
  }
  for (const std::uint64_t number : seen) EXPECT_EQ(table.texture(number), nullptr) << number;
}

TEST(TextureTable, WhatWasNeverGivenOutIsNotThere) {
  TextureTable table;
  const std::uint64_t number = table.insert(some_texture());
  for (const std::uint64_t other : {std::uint64_t{0}, number + 1, number | std::uint64_t{1} << 20, ~std::uint64_t{0},
                                    std::uint64_t{0x7ee0'0000'0000}}) {
    EXPECT_EQ(table.texture(other), nullptr) << other;
    EXPECT_EQ(table.list()->texture(other), nullptr) << other;
    EXPECT_FALSE(table.remove_texture(other)) << other;
  }
}

TEST(TextureTable, AListIsAMomentAndKeepsItsObjects) {
  TextureTable table;
  std::weak_ptr<void> memory;
  std::uint64_t number = 0;
  {
    Texture texture = some_texture();
    memory = texture.image.keeps;
    number = table.insert(std::move(texture));
  }
  const std::uint64_t generation = table.generation();
  std::shared_ptr<const TextureList> list = table.list();
  EXPECT_EQ(list, table.list());
  EXPECT_TRUE(table.remove_texture(number));
  EXPECT_NE(table.generation(), generation);
  EXPECT_NE(list->texture(number), nullptr);
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(table.list()->texture(number), nullptr);
  list.reset();
  EXPECT_TRUE(memory.expired());
}

TEST(TextureTable, ManyThreadsMayUseIt) {
  TextureTable table;
  const auto use = [&] {
    for (int k = 0; k < 300; ++k) {
      const std::uint64_t number = table.insert(some_texture());
      ASSERT_NE(table.list()->texture(number), nullptr);
      ASSERT_TRUE(table.remove_texture(number));
      ASSERT_EQ(table.list()->texture(number), nullptr);
    }
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(use);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace simgpu
