// The guest's rules for single CALL lines beyond the table. refuses() finds errors that CUDA reports at once, before
// the guest sends anything. learn() stores data of successful calls that later calls need.
#pragma once

#include <optional>
#include <type_traits>

#include "guest/calls/captured.h"
#include "guest/calls/find_stream.h"
#include "guest/process/process.h"
#include "ring/api/call.h"
#include "ring/api/id.h"

namespace guest {

template <class T>
bool is_null_reference(T p) {
  if constexpr (std::is_same_v<T, CUtexref> || std::is_same_v<T, CUsurfref>)
    return p == nullptr;
  else
    return false;
}

template <int Id>
struct Rules {
  // Returns the errors that CUDA reports first, in any state of the context and even without a context.
  template <class... P>
  static CUresult refuses_always(P... p) {
    return (is_null_reference(p) || ...) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
  template <class... P>
  static CUresult refuses(P...) {
    return CUDA_SUCCESS;
  }
  template <class... P>
  static void learn(Object*, P...) {}
};

template <>
struct Rules<api::id_of::cuMipmappedArrayDestroy> : Rules<0> {
  static CUresult refuses_always(CUmipmappedArray array) {
    return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
};

// Records that a capture has begun in the stream. The driver has found the stream.
inline void note_capture(CUstream stream) {
  StreamRef ref;
  if (find_stream(stream, ref) == CUDA_SUCCESS) session()->graphs.captures.began(*ref.object);
}

inline CUresult refuse_unknown(unsigned flags, unsigned known) {
  return (flags & ~known) != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

inline CUresult refuse_no_device(CUdevice device) {
  return device >= 0 && static_cast<std::uint32_t>(device) < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The external flags are valid only for captured streams. The driver refuses these flags in other streams.
inline CUresult refuse_external(unsigned flags, unsigned external) {
  if ((flags & ~external) != 0) return CUDA_ERROR_INVALID_VALUE;
  return flags == external && !session()->graphs.captures.any() ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

// Marks an event that may belong to a capture. Waiting for such an event may fail at once, even after the capture's
// end.
inline void note_recorded(CUevent event) {
  if (Object* const object = session()->objects.find(event, api::Handle::Event))
    object->in_capture.store(session()->graphs.captures.any(), std::memory_order_relaxed);
}

inline void note_used_by_graphs() { session()->graphs.use_events.store(true, std::memory_order_relaxed); }

inline void note_recorded_by_graphs(CUevent event) {
  note_used_by_graphs();
  if (Object* const object = session()->objects.find(event, api::Handle::Event)) object->last_use.used_by_graphs();
}

template <>
struct Rules<api::id_of::cuStreamCreate> : Rules<0> {
  static CUresult refuses(CUstream*, unsigned flags) { return refuse_unknown(flags, CU_STREAM_NON_BLOCKING); }
  static void learn(Object* stream, CUstream*, unsigned flags) { stream->flags = flags; }
};

template <>
struct Rules<api::id_of::cuStreamCreateWithPriority> : Rules<0> {
  static CUresult refuses(CUstream*, unsigned flags, int) { return refuse_unknown(flags, CU_STREAM_NON_BLOCKING); }
  static void learn(Object* stream, CUstream*, unsigned flags, int priority) {
    stream->flags = flags;
    stream->priority = priority;
  }
};

template <>
struct Rules<api::id_of::cuGreenCtxStreamCreate> : Rules<0> {
  static CUresult refuses(CUstream*, CUgreenCtx, unsigned flags, int) {
    return flags == CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static void learn(Object* stream, CUstream*, CUgreenCtx, unsigned flags, int priority) {
    stream->flags = flags;
    stream->priority = priority;
  }
};

template <>
struct Rules<api::id_of::cuStreamDestroy_v2> : Rules<0> {
  static CUresult refuses_always(CUstream stream) {
    return api::special_stream(reinterpret_cast<std::uint64_t>(stream)) ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
};

template <>
struct Rules<api::id_of::cuEventCreate> : Rules<0> {
  static CUresult refuses(CUevent*, unsigned flags) {
    const bool shared_but_timed = (flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0;
    if (shared_but_timed) return CUDA_ERROR_INVALID_VALUE;
    return refuse_unknown(flags, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  }
  static void learn(Object*, CUevent*, unsigned) {}
};

// A program can record an event only in streams of the event's context.
inline CUresult refuse_across(CUevent event, CUstream stream) {
  const Object* e = session()->objects.find(event, api::Handle::Event);
  const bool special = api::special_stream(reinterpret_cast<std::uint64_t>(stream));
  const Object* s = special ? nullptr : session()->objects.find(stream, api::Handle::Stream);
  if (e == nullptr || (s == nullptr && !special)) return CUDA_SUCCESS;  // the marshalling reports the unknown handle
  const Context* of_stream = special ? current_context() : s->context;
  return of_stream != nullptr && of_stream->home != e->context ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

template <>
struct Rules<api::id_of::cuEventRecord> : Rules<0> {
  static CUresult refuses(CUevent event, CUstream stream) { return refuse_across(event, stream); }
  static void learn(Object*, CUevent event, CUstream) { note_recorded(event); }
};

template <>
struct Rules<api::id_of::cuEventRecordWithFlags> : Rules<0> {
  static CUresult refuses(CUevent event, CUstream stream, unsigned flags) {
    if (const CUresult r = refuse_external(flags, CU_EVENT_RECORD_EXTERNAL); r != CUDA_SUCCESS) return r;
    return refuse_across(event, stream);
  }
  static void learn(Object*, CUevent event, CUstream, unsigned flags) {
    note_recorded(event);
    if (flags == CU_EVENT_RECORD_EXTERNAL) note_recorded_by_graphs(event);
  }
};

template <>
struct Rules<api::id_of::cuStreamWaitEvent> : Rules<0> {
  static CUresult refuses(CUstream, CUevent, unsigned flags) { return refuse_external(flags, CU_EVENT_WAIT_EXTERNAL); }
  static void learn(Object*, CUstream, CUevent, unsigned flags) {
    if (flags == CU_EVENT_WAIT_EXTERNAL) note_used_by_graphs();
  }
};

inline CUresult refuse_wait(unsigned flags) {
  if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;  // concerns only peer devices
  return flags > CU_STREAM_WAIT_VALUE_NOR ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
template <class Word>
struct WaitRules : Rules<0> {
  static CUresult refuses(CUstream, CUdeviceptr, Word, unsigned flags) { return refuse_wait(flags); }
};
template <>
struct Rules<api::id_of::cuStreamWaitValue32_v2> : WaitRules<cuuint32_t> {};
template <>
struct Rules<api::id_of::cuStreamWaitValue64_v2> : WaitRules<cuuint64_t> {};

template <class Word>
struct WriteRules : Rules<0> {
  static CUresult refuses(CUstream, CUdeviceptr, Word, unsigned flags) {
    return refuse_unknown(flags, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  }
};
template <>
struct Rules<api::id_of::cuStreamWriteValue32_v2> : WriteRules<cuuint32_t> {};
template <>
struct Rules<api::id_of::cuStreamWriteValue64_v2> : WriteRules<cuuint64_t> {};

// Checks one operation of a batch. The marshalling checks the operation's address.
inline CUresult refuse_operation(const CUstreamBatchMemOpParams& op) {
  switch (api::operation_of(op)) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return refuse_wait(op.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      // A single write may omit the barrier, but an operation of a batch may not.
      return refuse_unknown(op.writeValue.flags, 0U);
    case CU_STREAM_MEM_OP_BARRIER: return refuse_unknown(op.memoryBarrier.flags, CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
    // Concerns only peer devices, like the flag of a wait.
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
template <>
struct Rules<api::id_of::cuStreamBatchMemOp_v2> : Rules<0> {
  static CUresult refuses(CUstream, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
    constexpr unsigned most = 255;  // the driver's limit
    if (flags != 0 || count > most || (count != 0 && ops == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    CUresult refused = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && refused == CUDA_SUCCESS; ++i) refused = refuse_operation(ops[i]);
    return refused;
  }
};
// Calls that return INVALID_VALUE for a null array and for an unknown device.
template <class Handle>
CUresult refuse_none(Handle handle) {
  return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
template <>
struct Rules<api::id_of::cuArrayGetSparseProperties> : Rules<0> {
  static CUresult refuses_always(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray array) { return refuse_none(array); }
};
template <>
struct Rules<api::id_of::cuMipmappedArrayGetSparseProperties> : Rules<0> {
  static CUresult refuses_always(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray array) { return refuse_none(array); }
};
template <class Handle>
struct RequirementRules : Rules<0> {
  static CUresult refuses_always(CUDA_ARRAY_MEMORY_REQUIREMENTS*, Handle array, CUdevice) { return refuse_none(array); }
  static CUresult refuses(CUDA_ARRAY_MEMORY_REQUIREMENTS*, Handle, CUdevice device) { return refuse_no_device(device); }
};
template <>
struct Rules<api::id_of::cuArrayGetMemoryRequirements> : RequirementRules<CUarray> {};
template <>
struct Rules<api::id_of::cuMipmappedArrayGetMemoryRequirements> : RequirementRules<CUmipmappedArray> {};

// A program cannot create a pool of managed memory, because it could not reach memory from such a pool.
inline CUresult refuse_managed(CUmemAllocationType type) {
  return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
template <>
struct Rules<api::id_of::cuMemPoolCreate> : Rules<0> {
  static CUresult refuses(CUmemoryPool*, const CUmemPoolProps* p) {
    return p == nullptr ? CUDA_SUCCESS : refuse_managed(p->allocType);
  }
};
template <>
struct Rules<api::id_of::cuMemGetDefaultMemPool> : Rules<0> {
  static CUresult refuses(CUmemoryPool*, CUmemLocation*, CUmemAllocationType type) { return refuse_managed(type); }
};
template <>
struct Rules<api::id_of::cuMemGetMemPool> : Rules<0> {
  static CUresult refuses(CUmemoryPool*, CUmemLocation*, CUmemAllocationType type) { return refuse_managed(type); }
};

// cuDeviceGetMemPool and cuDeviceSetMemPool return INVALID_VALUE for an unknown device; cuDeviceGetDefaultMemPool
// returns INVALID_DEVICE.
template <>
struct Rules<api::id_of::cuDeviceGetMemPool> : Rules<0> {
  static CUresult refuses(CUmemoryPool*, CUdevice device) { return refuse_no_device(device); }
};

// Sets the pool from which cuMemAllocAsync allocates on a device. When the pool ends, the default pool replaces it.
template <>
struct Rules<api::id_of::cuDeviceSetMemPool> : Rules<0> {
  static CUresult refuses(CUdevice device, CUmemoryPool) { return refuse_no_device(device); }
  static void learn(Object*, CUdevice device, CUmemoryPool pool) {
    session()->memory.pools.set(static_cast<std::uint32_t>(device), api::number_of(pool));
  }
};
template <>
struct Rules<api::id_of::cuMemSetMemPool> : Rules<0> {
  static void learn(Object*, const CUmemLocation* at, CUmemAllocationType, CUmemoryPool pool) {
    if (at->type == CU_MEM_LOCATION_TYPE_DEVICE)
      session()->memory.pools.set(static_cast<std::uint32_t>(at->id), api::number_of(pool));
  }
};
template <>
struct Rules<api::id_of::cuMemPoolDestroy> : Rules<0> {
  static void learn(Object*, CUmemoryPool pool) { session()->memory.pools.forget(api::number_of(pool)); }
};

// Stores the priority, because the guest answers cuStreamGetPriority.
template <>
struct Rules<api::id_of::cuStreamCopyAttributes> : Rules<0> {
  static void learn(Object*, CUstream to, CUstream from) {
    Object* const copy = session()->objects.find(to, api::Handle::Stream);
    const Object* const original = session()->objects.find(from, api::Handle::Stream);
    if (copy != nullptr) copy->priority = original == nullptr ? 0 : original->priority;
  }
};

// ---- captures and graphs -------------------------------------------------------------------------------------------

template <>
struct Rules<api::id_of::cuStreamBeginCapture_v2> : Rules<0> {
  static void learn(Object*, CUstream stream, CUstreamCaptureMode) { note_capture(stream); }
};
template <>
struct Rules<api::id_of::cuStreamBeginCaptureToGraph> : Rules<0> {
  static void learn(Object*, CUstream stream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t,
                    CUstreamCaptureMode) {
    note_capture(stream);
  }
};
template <>
struct Rules<api::id_of::cuStreamIsCapturing> : Rules<0> {
  // While no capture is open, the guest knows the answer without the worker.
  static std::optional<CUresult> answer(CUstream stream, CUstreamCaptureStatus* status) {
    if (session()->graphs.captures.any()) return std::nullopt;
    StreamRef ref;
    if (const CUresult r = find_stream(stream, ref); r != CUDA_SUCCESS) return r;
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
};
inline CUresult refuse_no_event(CUevent event) { return event == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
template <>
struct Rules<api::id_of::cuGraphAddEventRecordNode> : Rules<0> {
  static CUresult refuses_always(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent event) {
    return refuse_no_event(event);
  }
  static void learn(Object*, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent event) {
    note_recorded_by_graphs(event);
  }
};
template <>
struct Rules<api::id_of::cuGraphEventRecordNodeSetEvent> : Rules<0> {
  static CUresult refuses_always(CUgraphNode, CUevent event) { return refuse_no_event(event); }
  static void learn(Object*, CUgraphNode, CUevent event) { note_recorded_by_graphs(event); }
};
template <>
struct Rules<api::id_of::cuGraphExecEventRecordNodeSetEvent> : Rules<0> {
  static CUresult refuses_always(CUgraphExec, CUgraphNode, CUevent event) { return refuse_no_event(event); }
  static void learn(Object*, CUgraphExec, CUgraphNode, CUevent event) { note_recorded_by_graphs(event); }
};

template <>
struct Rules<api::id_of::cuGraphAddEventWaitNode> : Rules<0> {
  static CUresult refuses_always(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent event) {
    return refuse_no_event(event);
  }
  static void learn(Object*, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent) { note_used_by_graphs(); }
};
template <>
struct Rules<api::id_of::cuGraphEventWaitNodeSetEvent> : Rules<0> {
  static CUresult refuses_always(CUgraphNode, CUevent event) { return refuse_no_event(event); }
};
template <>
struct Rules<api::id_of::cuGraphExecEventWaitNodeSetEvent> : Rules<0> {
  static CUresult refuses_always(CUgraphExec, CUgraphNode, CUevent event) { return refuse_no_event(event); }
};
// The driver checks whether an open capture forbids the call before it checks the executable graph.
template <>
struct Rules<api::id_of::cuGraphExecDestroy> : Rules<0> {
  static CUresult refuses_always(CUgraphExec exec) { return exec == nullptr ? disturb_captures() : CUDA_SUCCESS; }
};

// Graph nodes that allocate and free memory are not served yet.
inline CUresult refuse_memory_node(CUstream stream) {
  return is_captured(stream) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
template <>
struct Rules<api::id_of::cuMemAllocAsync> : Rules<0> {
  static CUresult refuses(CUdeviceptr*, std::size_t, CUstream stream) { return refuse_memory_node(stream); }
};
template <>
struct Rules<api::id_of::cuMemAllocFromPoolAsync> : Rules<0> {
  static CUresult refuses(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream stream) {
    return refuse_memory_node(stream);
  }
};
template <>
struct Rules<api::id_of::cuMemFreeAsync> : Rules<0> {
  static CUresult refuses(CUdeviceptr, CUstream stream) { return refuse_memory_node(stream); }
};

// Stores the limit that the program has set, because the guest checks launches against it.
inline void learn_attribute(Object* function, CUfunction_attribute attribute, int value) {
  if (function != nullptr && function->function != nullptr &&
      attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    function->function->max_dynamic_shared.store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
}

template <>
struct Rules<api::id_of::cuFuncSetAttribute> : Rules<0> {
  static CUresult refuses(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
  static void learn(Object*, CUfunction function, CUfunction_attribute attribute, int value) {
    learn_attribute(session()->objects.find(function, api::Handle::Function), attribute, value);
  }
};

template <>
struct Rules<api::id_of::cuKernelSetAttribute> : Rules<0> {
  static CUresult refuses(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
  static void learn(Object*, CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
    learn_attribute(session()->objects.find(kernel, api::Handle::Kernel), attribute, value);
  }
};

}  // namespace guest
