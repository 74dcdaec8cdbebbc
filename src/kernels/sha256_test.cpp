// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 against the examples that NIST publishes with FIPS 180-4 and its test vectors for short
// and long messages, and against itself across the borders of blocks.
#include "kernels/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace gofs::kernels {
namespace {

std::string sha256_hex(const std::string& message) {
  uint8_t digest[kSha256DigestBytes];
  sha256(reinterpret_cast<const uint8_t*>(message.data()), message.size(), digest);
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

struct Example {
  std::string message;
  const char* digest;
};

TEST(Sha256, published_examples) {
  const Example examples[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
       "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string(1, '\xd3'), "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
  };
  for (const Example& example : examples) {
    EXPECT_EQ(sha256_hex(example.message), example.digest) << example.message.size() << " bytes";
  }
}

// Each length around the place where the padding needs a second block; the digests are what
// sha256sum says of as many bytes 'x'.
TEST(Sha256, lengths_around_the_padding) {
  const struct {
    size_t bytes;
    const char* digest;
  } examples[] = {
      {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
      {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
      {57, "ae14a2563ccf969d99aca69ce6bb74981f734bbf9f655f73b8f06db68cab5217"},
      {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
      {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
      {65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
      {119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
      {120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98"},
      {127, "70156a14adbabf98cff3a71c7084b417abf057a8efd27329ca36b7202c87d81f"},
      {128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464"},
  };
  for (const auto& example : examples) {
    EXPECT_EQ(sha256_hex(std::string(example.bytes, 'x')), example.digest)
        << example.bytes << " bytes";
  }
}

}  // namespace
}  // namespace gofs::kernels
