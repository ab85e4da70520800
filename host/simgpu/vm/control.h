// Handlers for control flow, for operations between lanes, and for calls to the engine. They are compiled only once,
// not per instruction set, because they process the paths of lanes instead of rows of lanes.
#pragma once

#include "host/simgpu/vm/code.h"
#include "host/simgpu/vm/form.h"

namespace simgpu {

// control.cc defines these handlers.
Handlers jump_handler();
Handlers branch_handler();     // Ins::guard: condition, negated with flag_negated; Ins::index: target
Handlers table_handler();      // brx.idx: Ins::a: index into the table; Ins::index: the table
Handlers guarded_handler();    // executes the next instruction only for the lanes of Ins::guard
Handlers call_handler();       // Ins::index: call site; Ins::a: address of an indirect call
Handlers host_call_handler();  // Ins::count: a HostCall
Handlers return_handler();
Handlers exit_handler();
Handlers trap_handler();
Handlers break_handler();
Handlers barrier_handler();  // Ins::a: barrier; b: threads; guard: predicate; d: result; count: variant
Handlers cluster_arrive_handler();
Handlers cluster_wait_handler();
Handlers map_address_handler(bool wide);
Handlers rank_of_handler(bool wide);
Handlers fence_handler();
Handlers sleep_handler();
Handlers nothing_handler();

// special.cc defines these handlers.
Handlers special_handler(bool wide);  // Ins::count: a Special
Handlers frame_address_handler();     // the start of the frame's local memory plus Ins::imm

// stack.cc defines these handlers. Their operands have 64-bit lanes.
Handlers alloca_handler();         // Ins::a: size; d: address; imm: alignment
Handlers stack_save_handler();     // Ins::d: the saved stack pointer
Handlers stack_restore_handler();  // Ins::a: the saved stack pointer

// rendezvous.cc defines these handlers. Ins::e is the member mask.
enum class ShuffleMode : std::uint16_t { Up, Down, Butterfly, Index };
Handlers shuffle_handler(ShuffleMode mode);
enum class VoteMode : std::uint16_t { All, Any, Uniform, Ballot };
Handlers vote_handler();  // Ins::count: a VoteMode
Handlers match_handler(bool all, bool wide);
Handlers reduce_handler(Word operation, ptx::Type type);
Handlers warp_barrier_handler();
Handlers active_mask_handler();
Handlers elect_handler();

// atomic.cc defines this handler. Ins::a: address; b and c: values; d: old value, unless flag_no_result is set.
Handlers atomic_handler(Word operation, ptx::Type type);
// For 128 bits, Ins::a is the address. The extra places from Ins::index on are the halves of b, c and the old value.
Handlers wide_atomic_handler(bool swap);

// async.cc defines these handlers. Ins::a is an address.
enum class MbarrierStep : std::uint16_t { Init, Arrive, Drop, ExpectAndArrive, Expect, Complete };
Handlers mbarrier_handler();  // Ins::count: an MbarrierStep; b: count; d: token, unless flag_no_result is set
Handlers mbarrier_test_handler(bool parity);
Handlers pending_count_handler();
Handlers copy_handler();  // Ins::a: destination; b: source; c: valid bytes; imm: size
Handlers bulk_copy_handler();
Handlers bulk_reduction_handler(
    Word operation,
    ptx::Type type);  // none if there is no such  // Ins::a into, b from, c size, e mbarrier unless flag_no_result

}  // namespace simgpu
