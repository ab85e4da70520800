// Handlers of control flow, warp operations and calls to the engine. Compiled once, since they handle each lane's path
// rather than rows of lanes.
#pragma once

#include "host/simgpu/vm/code.h"
#include "host/simgpu/vm/form.h"

namespace simgpu {

// control.cc
Handlers jump_handler();
Handlers branch_handler();     // Ins::guard, flag_negated, index
Handlers table_handler();      // brx.idx: Ins::a, index of the table
Handlers guarded_handler();    // the next instruction, for the lanes of Ins::guard
Handlers call_handler();       // Ins::index: call site; Ins::a: address, if indirect
Handlers host_call_handler();  // Ins::count: HostCall
Handlers return_handler();
Handlers exit_handler();
Handlers trap_handler();
Handlers break_handler();
Handlers barrier_handler();  // Ins::a id, b threads, guard predicate, d result, count kind
Handlers cluster_arrive_handler();
Handlers cluster_wait_handler();
Handlers map_address_handler(bool wide);
Handlers rank_of_handler(bool wide);
Handlers fence_handler();
Handlers sleep_handler();
Handlers nothing_handler();

// special.cc
Handlers special_handler(bool wide);  // Ins::count: Special
Handlers frame_address_handler();     // Ins::imm + start of the frame's local memory

// stack.cc: 64-bit lanes
Handlers alloca_handler();         // Ins::a size, d address, imm alignment
Handlers stack_save_handler();     // Ins::d
Handlers stack_restore_handler();  // Ins::a

// rendezvous.cc: Ins::e is the member mask
enum class ShuffleMode : std::uint16_t { Up, Down, Butterfly, Index };
Handlers shuffle_handler(ShuffleMode mode);
enum class VoteMode : std::uint16_t { All, Any, Uniform, Ballot };
Handlers vote_handler();  // Ins::count: VoteMode
Handlers match_handler(bool all, bool wide);
Handlers reduce_handler(Word operation, ptx::Type type);
Handlers warp_barrier_handler();
Handlers active_mask_handler();
Handlers elect_handler();

// atomic.cc: Ins::a address, b and c values, d old value unless flag_no_result
Handlers atomic_handler(Word operation, ptx::Type type);
// 128 bits: Ins::a address; the halves of b, c and the old value in extra places from Ins::index on.
Handlers wide_atomic_handler(bool swap);

// async.cc: Ins::a is an address
enum class MbarrierStep : std::uint16_t { Init, Arrive, Drop, ExpectAndArrive, Expect, Complete };
Handlers mbarrier_handler();  // Ins::count: MbarrierStep; Ins::b count, d token unless flag_no_result
Handlers mbarrier_test_handler(bool parity);
Handlers pending_count_handler();
Handlers copy_handler();  // Ins::a destination, b source, c valid bytes, imm size
Handlers bulk_copy_handler();
Handlers bulk_reduction_handler(
    Word operation,
    ptx::Type type);  // none if there is no such  // Ins::a into, b from, c size, e mbarrier unless flag_no_result

}  // namespace simgpu
