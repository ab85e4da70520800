// Attributes of ranges of managed memory: the advice that all parts of a range share, and results that fit or exceed
// the buffer.
#include "ring/abi/range_attributes.h"

#include <gtest/gtest.h>

namespace {

using cuabi::RangeAdvice;

struct Part {
  CUmemLocation place;
};
bool same(const CUmemLocation& a, const CUmemLocation& b) { return a.type == b.type && a.id == b.id; }

TEST(RangeAttributes, AreInvalidWhereThePartsDiffer) {
  const Part first{{CU_MEM_LOCATION_TYPE_DEVICE, 1}}, second{{CU_MEM_LOCATION_TYPE_DEVICE, 2}};
  const CUmemLocation alike = cuabi::common_place(std::vector{first, first}, &Part::place, same);
  EXPECT_EQ(alike.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(alike.id, 1);
  EXPECT_EQ(cuabi::common_place(std::vector{first, second}, &Part::place, same).type, CU_MEM_LOCATION_TYPE_INVALID);
}

TEST(RangeAttributes, NameAPlaceByItsDevice) {
  EXPECT_EQ(cuabi::number_of_place({CU_MEM_LOCATION_TYPE_DEVICE, 3}), 3);
  EXPECT_EQ(cuabi::number_of_place({CU_MEM_LOCATION_TYPE_HOST, 3}), CU_DEVICE_CPU);
  EXPECT_EQ(cuabi::number_of_place({CU_MEM_LOCATION_TYPE_INVALID, 3}), CU_DEVICE_INVALID);
}

TEST(RangeAttributes, FillTheBufferOfAccessors) {
  const RangeAdvice advice{.accessed_by = {0, 2, CU_DEVICE_CPU}};
  const auto ask = [&](CUdevice* to, std::size_t bytes) {
    return cuabi::range_attribute(advice, to, bytes, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY);
  };
  CUdevice numbers[5] = {9, 9, 9, 9, 9};
  EXPECT_EQ(ask(numbers, 2 * sizeof *numbers), CUDA_SUCCESS);
  EXPECT_EQ(numbers[1], 2);
  EXPECT_EQ(numbers[2], 9) << "beyond the buffer";
  EXPECT_EQ(ask(numbers, 4 * sizeof *numbers), CUDA_SUCCESS);
  EXPECT_EQ(numbers[2], CU_DEVICE_CPU);
  EXPECT_EQ(numbers[3], CU_DEVICE_INVALID);
  EXPECT_EQ(numbers[4], 9);
  EXPECT_EQ(ask(numbers, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(numbers, 6), CUDA_ERROR_INVALID_VALUE);
}

TEST(RangeAttributes, NeedABufferOfTheirSize) {
  const RangeAdvice advice{.read_mostly = true, .preferred = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  int value = 0;
  void* data[] = {&value, nullptr};
  const std::size_t bytes[] = {sizeof value, sizeof value};
  const CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
                                              CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY};
  EXPECT_EQ(cuabi::range_attributes(advice, data, bytes, attributes, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cuabi::range_attributes(advice, data, bytes, attributes, 2), CUDA_ERROR_INVALID_VALUE) << "no buffer";
  EXPECT_EQ(cuabi::range_attribute(advice, &value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), CUDA_ERROR_INVALID_VALUE);
  volatile int unknown = 99;  // gcc refuses to convert a constant that the enumeration does not have
  EXPECT_EQ(cuabi::range_attribute(advice, &value, 4, static_cast<CUmem_range_attribute>(unknown)),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
