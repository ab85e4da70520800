// MD2 against RFC 1319's vectors, and the runtime's integrity digest against digests that the runtime accepted.
#include "ring/abi/integrity.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

std::span<const std::uint8_t> bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string hex(const cuabi::Digest& digest) {
  std::string out;
  char two[3];
  for (const std::uint8_t byte : digest) {
    std::snprintf(two, sizeof two, "%02x", byte);
    out += two;
  }
  return out;
}

TEST(Integrity, md2_gives_the_vectors_of_its_rfc) {
  EXPECT_EQ(hex(cuabi::md2(bytes(""))), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(hex(cuabi::md2(bytes("a"))), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(hex(cuabi::md2(bytes("abc"))), "da853b0d3f88d99b30283a69e6ded6bb");
  EXPECT_EQ(hex(cuabi::md2(bytes("message digest"))), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(hex(cuabi::md2(bytes("abcdefghijklmnopqrstuvwxyz"))), "4e8ddff3650292ab5a4108c3aa47940b");
}

constexpr cuabi::IntegrityFacts facts{.driver_version = 12080,
                                      .version = 12082,
                                      .process = 0x2fa423,
                                      .thread = 0xf79c1000,
                                      .cudart_table = 0x7ffff6958240,
                                      .integrity_table = 0x7ffff6958220,
                                      .integrity_function = 0x7ffff2aaf4a0,
                                      .unix_seconds = 0x682b9cee};

constexpr cuabi::DeviceIdentity device{.uuid = {{'\x9a', '\xfe', '\x2b', '\x8a', '\xac', '\x25', '\x2d', '\x38', '\xea',
                                                 '\x37', '\xae', '\xc5', '\x6d', '\x71', '\x32', '\x5f'}},
                                       .pci_domain = 0,
                                       .pci_bus = 2,
                                       .pci_device = 0};

TEST(Integrity, digest_with_and_without_a_device) {
  EXPECT_EQ(hex(cuabi::integrity_digest(facts, {&device, 1})), "4448a171b026cef76c8c3e39051b02dd");
  EXPECT_EQ(hex(cuabi::integrity_digest(facts, {})), "0779ef5e4ffa2dd207527503d1907bfa");
}

TEST(Integrity, versions_ending_in_0_and_1_give_constants) {
  cuabi::IntegrityFacts other = facts;
  other.version = 13000;
  EXPECT_EQ(hex(cuabi::integrity_digest(other, {})), "5c67cb031c184133e8d14c1faa83d38e");
  other.version = 13001;
  EXPECT_EQ(hex(cuabi::integrity_digest(other, {&device, 1})), "5c67cb031c184118e8d14c1faa83d38e");
}

TEST(Integrity, every_field_is_covered) {
  const cuabi::Digest right = cuabi::integrity_digest(facts, {&device, 1});
  for (std::size_t byte = 0; byte < sizeof facts; ++byte) {
    cuabi::IntegrityFacts wrong = facts;
    reinterpret_cast<std::uint8_t*>(&wrong)[byte] ^= 0x40;
    if (wrong.version % 10 >= 2) {
      EXPECT_NE(cuabi::integrity_digest(wrong, {&device, 1}), right) << "byte " << byte;
    }
  }
  for (std::size_t byte = 0; byte < sizeof device; ++byte) {
    cuabi::DeviceIdentity wrong = device;
    reinterpret_cast<std::uint8_t*>(&wrong)[byte] ^= 1;
    EXPECT_NE(cuabi::integrity_digest(facts, {&wrong, 1}), right) << "byte " << byte;
  }
}

}  // namespace
