// What ended workers leave for the status (host/broker/vm/worker_history.h).
#include "host/broker/vm/worker_history.h"

#include <gtest/gtest.h>

namespace host::broker {
namespace {

using End = WorkerProcess::End;

class WorkerHistoryTest : public testing::Test {
 protected:
  void end(End end, pid_t worker = 7) {
    history_.add_end(3, {.end = end, .worker = worker, .number = 11, .how = "ended", .last_words = "the reason"});
  }

  EventLoop loop_;
  const VmContext context_{loop_, {}, {}};
  WorkerHistory history_{context_};
};

TEST_F(WorkerHistoryTest, CountsEachEndByItsKind) {
  for (const End kind : {End::Orderly, End::ProtocolBroken, End::KilledByBroker, End::Signal, End::OtherCode})
    end(kind);
  const WorkerEnds& ends = history_.ends();
  EXPECT_EQ(ends.orderly + ends.protocol_broken + ends.killed_by_broker + ends.signal + ends.other_code, 5U);
  EXPECT_EQ(ends.orderly, 1U);
  EXPECT_EQ(ends.signal, 1U);
}

TEST_F(WorkerHistoryTest, KeepsNoReasonOfAnOrderlyEnd) {
  end(End::Orderly);
  EXPECT_EQ(history_.ends().last_reason, "");
  EXPECT_TRUE(history_.ends().failures.empty());
}

TEST_F(WorkerHistoryTest, KeepsTheReasonOfASignal) {
  end(End::Signal);
  end(End::ProtocolBroken);
  EXPECT_EQ(history_.ends().last_signal, "slot 3: the worker ended: the reason");
  ASSERT_EQ(history_.ends().failures.size(), 1U);
  EXPECT_TRUE(history_.ends().failures.front().by_signal);
}

TEST_F(WorkerHistoryTest, DropsTheOldestFailureWhenTheListIsFull) {
  const pid_t more = WorkerEnds::most_failures + 2;
  for (pid_t worker = 1; worker <= more; ++worker) end(End::OtherCode, worker);
  EXPECT_EQ(history_.ends().failures.size(), WorkerEnds::most_failures);
  EXPECT_EQ(history_.ends().failures.front().worker, 3);
  EXPECT_EQ(history_.ends().failures.back().worker, more);
}

TEST_F(WorkerHistoryTest, AddsCountersWithoutTheMemoryThatAnEndFrees) {
  Counters last;
  last.device_memory = 5;
  history_.add(last);
  EXPECT_EQ(history_.counters().device_memory, 0U);
}

}  // namespace
}  // namespace host::broker
