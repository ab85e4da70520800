// How often and how long the two halves of a session's turns look and wait: its channels (turns.cc) and its keepers
// (turn_keeper.cc).
#pragma once

#include <time.h>

#include <chrono>

#include "ring/turns.h"

namespace host::turn_times {

using namespace std::chrono_literals;

constexpr auto look_every = 2us;  // at a session's channels: often enough, and seldom touching their lines
// In a turn, at what they write with each call. Each look makes their next write slower: with one each 2 us a burst of
// launches took a fifth longer.
constexpr auto look_at_calls_every = 10us;
constexpr auto look_at_held_up_every = 50us;  // at streams that wait for values: each look asks the driver
constexpr auto quiet_as_always = 10us;        // then a turn is given back, where the session's pauses are always long
constexpr auto polls_for = 50us;              // a channel for its turn, before it sleeps
// The same, once it was woken: the scheduler wakes whoever is next shortly before its turn, and again after this time.
constexpr auto woken_polls_for = 250us;
constexpr timespec longest_sleep{0, 100'000'000};  // then it looks whether the session ends
constexpr timespec watch_every{0, 1'000'000};      // ten times between two looks of the scheduler

// How much work a turn may have under way.
inline std::chrono::microseconds work_wanted(const ring::DeviceGrant& grant) {
  return std::chrono::microseconds(grant.most_us.load(std::memory_order_relaxed));
}

inline void pause_for(std::chrono::nanoseconds time) {
  for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < time;)
    __builtin_ia32_pause();
}

}  // namespace host::turn_times
