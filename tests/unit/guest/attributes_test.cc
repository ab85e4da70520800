// Attributes that the guest library answers itself. Each attribute has a reason, and the program device_query omits
// exactly these attributes.
#include "guest/calls/context/device_attributes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/programs/kept_attributes.h"

namespace {

TEST(Attributes, EachThatIsNotTheDriversHasItsReasonOnce) {
  std::set<CUdevice_attribute> seen;
  for (const guest::AttributeRule& rule : guest::attribute_rules) {
    EXPECT_TRUE(seen.insert(rule.attribute).second) << rule.attribute << " is there twice";
    EXPECT_NE(std::string(rule.reason), "") << rule.attribute;
  }
}

TEST(Attributes, DeviceQueryLeavesOutWhatTheTableHasAndNothingElse) {
  std::set<CUdevice_attribute> ruled;
  for (const guest::AttributeRule& rule : guest::attribute_rules) ruled.insert(rule.attribute);
  EXPECT_EQ(ruled, std::set<CUdevice_attribute>(std::begin(kept_by_the_transport), std::end(kept_by_the_transport)));
}

}  // namespace
