// The numbers that the scheduler of turns decides by, and what its files (policy*.cc) compute with them.
// docs/design/028-turns.md has the measurements, and tests/turns/ tries the choices.
#pragma once

#include <chrono>
#include <cstdint>

#include "host/turns/policy.h"

namespace host::turns {

using namespace std::chrono_literals;

// The driver's, on an H200.
constexpr Time change = 137us;  // what a wait costs for each process that has work, under time slices
constexpr Time slice = 2ms;

// What programs do is looked at this often, and judged by a few looks.
constexpr Time sample_every = 10ms;
constexpr double newest = 0.25;           // the weight of the newest sample
constexpr double newest_in_turns = 0.02;  // which come back after several samples
constexpr int enough_samples = 5;
constexpr Time active_for = 100ms;   // a client that submitted so lately counts
constexpr Time quiet_after = 1s;     // without a submission for so long, the scheduler sleeps
constexpr Time look_anyway = 100ms;  // then: whoever rings may have rung in vain

// When turns begin and end. A try that fails is made again, but more and more seldom.
constexpr double gain_to_begin = 1.1, gain_to_go_on = 1.05;  // for the client that gains most
// Where no turn has told yet what its pieces of work are like. Launches take longer under slices as well, which looks like
// time of the program's own: four that gain 1.8 times by turns seemed to gain 0.9 to 1.1 times (H200).
constexpr double gain_to_try = 0.85;
constexpr double small_gain = 1.5;          // that a try would have shown, if it were there
constexpr double share_to_go_on = 1 / 10.;  // of a client's time, that changes would eat
constexpr Time known_for = 20s;             // what a program did in turns is no news after that
constexpr Time pays_for = 200ms;            // turns go on so long after they last paid
// Turns that went well and then do not pay go on for longer if somebody looks for work without a turn, which may be the
// reason: two samples of the GPU's use, of 200 ms each, and the looks at them.
constexpr Time watched_for = 1s;
// As pays_for, where all have had turns and they never paid, for each client: several looks, and several turns.
constexpr Time tried_for = 20ms;
constexpr int tried_quanta = 20;
constexpr Time shortest_dwell = 100ms, longest_dwell = 30s;  // under slices, before the next try
constexpr Time longest_dwell_of_others = 5s;                 // the same, where the last try was in other company
constexpr Time a_success = 1s;                               // turns that went on for so long were no mistake

// Work that does not end. A program may have 1024 kernels queued, and each of them may take long.
constexpr Time short_ending = 100ms;   // whoever ends its work so soon has no deep queue
constexpr Time longest_settling = 2s;  // for each client: 1024 kernels of 1.25 ms, and as much again
constexpr unsigned most_overlong = 3;  // in a row
constexpr Time suspected_for = 10s;    // then its large copies pass no gate again
constexpr Time longest_deafness =
    400ms;                        // a keeper that sleeps sees a grant within a millisecond, where it has a processor
constexpr Time long_ending = 1s;  // in turns: the driver slices beside them all that time
constexpr int retries_cost = 20;  // a client that cannot take turns may cost a twentieth of the time by tries

// Debts under slices. The bound is five slices, so that whoever is charged by samples of 10 ms is not closed for the noise
// of one, and little beside what a VM of a seventh has in two seconds. Who was closed is let in at a debt of 0.
constexpr Time longest_debt = 10ms;
constexpr double most_debt = 0.06;  // seconds, that are remembered: of what could not be prevented
// For a client with nothing under way, as long as its VM takes to pay back what it owes, between these, and where its waits
// are long for so many of them: a VM of a seventh with pieces of 50 ms, which take 160 ms beside two others, needs 310 ms.
constexpr Time usual_hold = 50ms, longest_hold = 100ms, longest_hold_of_long_pieces = 400ms;
constexpr double waits_in_a_hold = 2;
// For one with work that may not end before it submits more; then it is let in for as long at least.
constexpr Time longest_hold_at_work = 500ms;
constexpr double busy_all_the_time = 0.85;   // who has work for this part of the time wants the GPU all the time
constexpr double newest_of_more = 0.5;       // as `newest`, where that is more: who comes back soon counts again
constexpr double all_pause_below = 0.1;      // of a sample, in which all together had work: it tells nothing of any
constexpr double changes_not_charged = 0.5;  // this part of what they cost
constexpr double use_of_a_hold = 0.9;        // of the GPU that it frees, at least

// Turns.
constexpr int waits_in_a_turn = 6;          // so that its end cuts a small part of its work
constexpr int longest_quantum = 4;          // quanta
constexpr int quanta_of_gainers = 2;        // so that of what they gain changes eat a tenth, and not a fifth
constexpr Time short_pieces = 10 * change;  // of work: a change costs more than a tenth of it
constexpr Time cost_of_a_turn = 180us;      // a change, and two hand-overs
constexpr double older_turns = 0.75;        // their weight in what pieces of work are like, for each newer one
// The pages of a holder and of those that wait are read this often: each look makes the worker's next write to its page
// slower, and a turn is long. When a turn has been ended it is all the time.
constexpr Time look_in_a_turn = 10us;
// Whoever goes next is woken so long before the holder's quantum is over, and again so long after. A thread that sleeps
// takes 30 to 60 us until it runs, on a processor of a VM's up to 200, and then polls for longer than this.
constexpr Time woken_before = 100us, woken_again = 200us;
constexpr double newest_cost = 0.02;      // the weight of the newest turn in what turns cost
constexpr double highest_tax = 10;        // on the time of those who gain by turns
constexpr Time quiet_of_latency = 500us;  // then its turn is over; pauses of 0.4 ms between two launches were seen
constexpr std::chrono::microseconds quiet_as_always = 20us;  // the same, after a wait, where its pauses are always long
constexpr int credit_of_latency = 4;  // quanta by which a VM of the latency class may be ahead and still go first

// A VM that uses so little of the GPU is light, and goes first beside one that uses so much.
constexpr double most_to_be_light = 0.25, most_of_light = 0.35;
constexpr double least_to_be_heavy = 0.5, least_of_heavy = 0.3;
constexpr double newest_part = 0.05;  // the weight of the newest sample in what a VM uses
constexpr int enough_to_weigh = 20;   // samples

// What the making and the end of a worker's context cost whoever works meanwhile: 9 to 15 ms, and up to 3, on an H100
// (tests/probes/cheats.cc).
constexpr Time cost_of_a_start = 12ms, cost_of_an_end = 3ms;

inline double seconds(Time t) { return std::chrono::duration<double>(t).count(); }
inline Time time_of(double seconds) { return std::chrono::duration_cast<Time>(std::chrono::duration<double>(seconds)); }
inline Time over(Time t, double weight) { return std::chrono::duration_cast<Time>(t / weight); }

// A counter that goes backwards is wrong, and counts as nothing.
inline std::uint64_t since(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

}  // namespace host::turns
