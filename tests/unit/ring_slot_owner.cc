// A slot's owner and its seal: what is whole is read, what is torn, late or of another epoch is not.
#include <gtest/gtest.h>

#include "ring/slot_owner.h"

namespace {

using ring::SlotOwner, ring::SlotState, ring::SlotWord;

constexpr SlotWord held{5, SlotState::Claimed};
constexpr SlotOwner somebody{.boot = 1, .pid_space = 2, .start_time = 3, .pid = 4, .peer = 66};

struct Entry : testing::Test {
  Entry() { ring::clear_owner(entry, held.epoch); }
  ring::SlotEntry entry{};
};

TEST_F(Entry, OfWhoHasNotSaidYetIsNotKnown) { EXPECT_FALSE(ring::read_owner(entry, held)); }

TEST_F(Entry, AWholeOwnerIsReadInItsEpochOnly) {
  ASSERT_TRUE(ring::write_owner(entry, held, somebody));
  const auto read = ring::read_owner(entry, held);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::bit_cast<ring::OwnerWords>(*read), std::bit_cast<ring::OwnerWords>(somebody));
  EXPECT_TRUE(ring::read_owner(entry, held.with(SlotState::Dead)));
  EXPECT_FALSE(ring::read_owner(entry, held.next()));
}

TEST_F(Entry, EachBitOfTheWordsCounts) {
  ASSERT_TRUE(ring::write_owner(entry, held, somebody));
  for (auto& word : entry.owner)
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t was = word.load();
      word.store(was ^ 1ULL << bit);
      EXPECT_FALSE(ring::read_owner(entry, held)) << bit;
      word.store(was);
    }
  EXPECT_TRUE(ring::read_owner(entry, held));
}

// By the broker, which wants to know no more, and whatever is written over the words.
TEST_F(Entry, TheConnectionIsToldByTheSealAlone) {
  EXPECT_EQ(ring::sealed_peer(entry), 0u);
  ASSERT_TRUE(ring::write_owner(entry, held, somebody));
  EXPECT_EQ(ring::sealed_peer(entry), somebody.peer);
  for (auto& word : entry.owner) word.store(~0ULL);
  EXPECT_EQ(ring::sealed_peer(entry), somebody.peer);
  ring::clear_owner(entry, held.next().epoch);
  EXPECT_TRUE(ring::give_up_owner(entry, held.next()));
  EXPECT_EQ(ring::sealed_peer(entry), 0u);
}

TEST_F(Entry, AClaimThatIsGivenUpHoldsNothing) {
  EXPECT_TRUE(ring::give_up_owner(entry, held));
  EXPECT_TRUE(ring::give_up_owner(entry, held));  // and stays so
  EXPECT_FALSE(ring::write_owner(entry, held, somebody));
  EXPECT_FALSE(ring::read_owner(entry, held));
}

TEST_F(Entry, AnOwnerThatIsKnownIsNotGivenUp) {
  ASSERT_TRUE(ring::write_owner(entry, held, somebody));
  EXPECT_FALSE(ring::give_up_owner(entry, held));
  EXPECT_TRUE(ring::read_owner(entry, held));
}

// A claimer of the session before, before and after its successor has said who it is.
TEST_F(Entry, OneThatComesAnEpochTooLateIsNotBelieved) {
  const SlotWord next = held.next().with(SlotState::Claimed);
  SlotOwner late = somebody;
  late.pid = 99;
  ring::clear_owner(entry, next.epoch);
  EXPECT_FALSE(ring::write_owner(entry, held, late));
  EXPECT_FALSE(ring::read_owner(entry, next));
  ASSERT_TRUE(ring::write_owner(entry, next, somebody));
  EXPECT_TRUE(ring::read_owner(entry, next));
  EXPECT_FALSE(ring::write_owner(entry, held, late));
  EXPECT_FALSE(ring::read_owner(entry, next));  // not known any more, but not wrong
}

TEST(SlotOwner, AScribbledSealIsNoneOfTheThree) {
  const std::uint64_t closed = ring::seal_closed;
  for (const std::uint64_t seal :
       {std::uint64_t{0}, ~std::uint64_t{0}, closed, ring::open_seal(6), ring::given_up_seal(6)}) {
    ring::SlotEntry entry{};
    entry.owner_seal.store(seal);
    EXPECT_FALSE(ring::read_owner(entry, held)) << seal;
    EXPECT_FALSE(ring::give_up_owner(entry, held)) << seal;
    EXPECT_FALSE(ring::write_owner(entry, held, somebody)) << seal;
  }
}

}  // namespace
