// Cases for host functions and callbacks in streams: arguments, order, and the effect of a fault.
#include "tests/contract/graphs.h"

namespace contract {
namespace {

void do_nothing(void*) {}

GROUP(host_function_arguments, InContext) {
  CUstream stream = nullptr;
  Counter count = 0;
  CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  show("no function", CU(cuLaunchHostFunc)(stream, nullptr, &count));
  show("no function, no data", CU(cuLaunchHostFunc)(stream, nullptr, nullptr));
  show("no data", CU(cuLaunchHostFunc)(stream, do_nothing, nullptr));
  show("in a stream", CU(cuLaunchHostFunc)(stream, count_call, &count));
  show("wait for it", CU(cuStreamSynchronize)(stream));
  show("calls", settled(count, 1));
  show("in the NULL stream", CU(cuLaunchHostFunc)(nullptr, count_call, &count));
  show("in the legacy stream", CU(cuLaunchHostFunc)(CU_STREAM_LEGACY, count_call, &count));
  show("in the thread's stream", CU(cuLaunchHostFunc)(CU_STREAM_PER_THREAD, count_call, &count));
  show("_ptsz in the NULL stream", CU(cuLaunchHostFunc_ptsz)(nullptr, count_call, &count));
  show("_ptsz in a stream", CU(cuLaunchHostFunc_ptsz)(stream, count_call, &count));
  show("_ptsz no function", CU(cuLaunchHostFunc_ptsz)(nullptr, nullptr, &count));
  show("wait for all", CU(cuCtxSynchronize)());
  show("calls", settled(count, 6));
  show("from another thread", in_a_thread([&] { return CU(cuLaunchHostFunc)(stream, count_call, &count); }));
  show("wait", CU(cuStreamSynchronize)(stream));
  show("calls", settled(count, 7));
}

GROUP(host_functions_of_dead_streams, Loaded) {
  const auto destroyed = [] {
    CUstream stream = nullptr;
    CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    CU(cuStreamDestroy_v2)(stream);
    return stream;
  };
  show_alone_in_context("a host function in a destroyed stream",
                        [&] { return CU(cuLaunchHostFunc)(destroyed(), do_nothing, nullptr); });
  show_alone_in_context("a callback in a destroyed stream", [&] {
    return CU(cuStreamAddCallback)(
        destroyed(), [](CUstream, CUresult, void*) {}, nullptr, 0);
  });
  show_alone("a host function without a context", [] {
    CU(cuInit)(0);
    return CU(cuLaunchHostFunc)(nullptr, do_nothing, nullptr);
  });
  show_alone("a callback without a context", [] {
    CU(cuInit)(0);
    return CU(cuStreamAddCallback)(
        nullptr, [](CUstream, CUresult, void*) {}, nullptr, 0);
  });
  show_alone_in_context("a stream is destroyed while a host function waits in it", [] {
    static Gate gate;
    static Counter count = 0;
    CUstream stream = nullptr;
    CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    CU(cuLaunchHostFunc)(stream, Gate::hold, &gate);
    CU(cuLaunchHostFunc)(stream, count_call, &count);
    const CUresult code = CU(cuStreamDestroy_v2)(stream);
    show("called before the gate opens", count);
    gate.open = true;
    show("called in the end", settled(count, 1));
    return code;
  });
}

// Pinned words, and the values that a host function has read from them.
struct Seen {
  volatile unsigned* words = nullptr;
  unsigned seen = 0;

  static void look(void* data) {
    auto& self = *static_cast<Seen*>(data);
    self.seen = self.words[0];
    self.words[1] = self.seen + 1;
  }
};

GROUP(host_function_order, InContext) {
  GraphWork work;
  Seen seen;
  void* pinned = nullptr;
  CU(cuMemHostAlloc)(&pinned, 64, 0);
  std::memset(pinned, 0, 64);
  seen.words = static_cast<unsigned*>(pinned);
  show("a kernel's store", work.launch_store(work.stream, 40));
  show("a copy of it to the host", CU(cuMemcpyDtoHAsync_v2)(pinned, work.a, 4, work.stream));
  show("a host function behind it", CU(cuLaunchHostFunc)(work.stream, Seen::look, &seen));
  const auto second_word = static_cast<unsigned*>(pinned) + 1;
  show("a copy behind that", CU(cuMemcpyHtoDAsync_v2)(work.a + 4, second_word, 4, work.stream));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the function saw", seen.seen);
  show("the device has", word_at(work.a + 4));
  StoreParameters to_host(address_of(pinned), 50);
  show("a kernel's store to the host",
       CU(cuLaunchKernel)(work.store, 1, 1, 1, 1, 1, 1, 0, work.stream, to_host.list, nullptr));
  show("a host function behind it", CU(cuLaunchHostFunc)(work.stream, Seen::look, &seen));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("the function saw", seen.seen);
  struct Step {
    std::string* all;
    char letter;
    static void take(void* step) { static_cast<Step*>(step)->all->push_back(static_cast<Step*>(step)->letter); }
  };
  std::string letters;
  Step steps[] = {{&letters, 'a'}, {&letters, 'b'}, {&letters, 'c'}, {&letters, 'd'}};
  for (Step& step : steps) CU(cuLaunchHostFunc)(work.stream, Step::take, &step);
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show_flag("four in one stream run in order", letters == "abcd");
}

GROUP(host_function_holds, InContext) {
  GraphWork work;
  Gate gate;
  Counter behind = 0, beside = 0;
  CU(cuMemsetD32Async)(work.a, 2, 1, work.other);
  CU(cuCtxSynchronize)();
  CU(cuLaunchHostFunc)(work.stream, Gate::hold, &gate);
  show_flag("it is called", gate.is_entered());
  CU(cuLaunchHostFunc)(work.stream, count_call, &behind);
  show("an event behind it", CU(cuEventRecord)(work.event, work.stream));
  show("a fill in another stream", CU(cuMemsetD32Async)(work.a, 3, 1, work.other));
  show("wait for that", CU(cuStreamSynchronize)(work.other));
  show("its word by a copy", word_at(work.a));
  CU(cuLaunchHostFunc)(work.other, count_call, &beside);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  show("the stream is", CU(cuStreamQuery)(work.stream));
  show("the event is", CU(cuEventQuery)(work.event));
  show("the other stream with a function is", CU(cuStreamQuery)(work.other));
  show("called behind it", behind);
  show("called in the other stream", beside);
  gate.open = true;
  show("wait for the event", CU(cuEventSynchronize)(work.event));
  show("called behind it, then", behind);
  show("wait for the other", CU(cuStreamSynchronize)(work.other));
  show("called in the other stream, then", beside);
  static std::thread::id first, second;
  CU(cuLaunchHostFunc)
  (
      work.stream, [](void*) { first = std::this_thread::get_id(); }, nullptr);
  CU(cuLaunchHostFunc)
  (
      work.other, [](void*) { second = std::this_thread::get_id(); }, nullptr);
  CU(cuCtxSynchronize)();
  show_flag("it runs in the program's thread", first == std::this_thread::get_id());
  show_flag("those of two streams run in one thread", first == second);
}

// The arguments that a stream callback has received.
struct Given {
  Counter calls = 0;
  CUstream stream = nullptr;
  CUresult status = CUDA_ERROR_UNKNOWN;

  static void take(CUstream in, CUresult status, void* data) {
    auto& self = *static_cast<Given*>(data);
    self.stream = in;
    self.status = status;
    ++self.calls;
  }
};

GROUP(stream_callbacks, InContext) {
  GraphWork work;
  Given given;
  const auto add = CU(cuStreamAddCallback);
  show("no callback", add(work.stream, nullptr, &given, 0));
  show("flags 1", add(work.stream, Given::take, &given, 1));
  show("a callback", add(work.stream, Given::take, &given, 0));
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("calls", settled(given.calls, 1));
  show("its status", given.status);
  show_flag("it is given the stream", given.stream == work.stream);
  const auto with = [&](const std::string& name, CUstream stream, CUstream told) {
    given.calls = 0;
    given.stream = untouched<CUstream>();
    show("in " + name, add(stream, Given::take, &given, 0));
    show("wait", CU(cuCtxSynchronize)());
    show("calls", settled(given.calls, 1));
    show_flag("it is given the stream as it was named", given.stream == told);
  };
  with("the NULL stream", nullptr, nullptr);
  with("the legacy stream", CU_STREAM_LEGACY, CU_STREAM_LEGACY);
  with("the thread's stream", CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
  given.calls = 0;
  show("_ptsz in the NULL stream", CU(cuStreamAddCallback_ptsz)(nullptr, Given::take, &given, 0));
  show("_ptsz no callback", CU(cuStreamAddCallback_ptsz)(nullptr, nullptr, &given, 0));
  show("wait for the thread's stream", CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  show("calls", settled(given.calls, 1));
  show_flag("it is given the NULL stream", given.stream == nullptr);
  show_flag("it is given the thread's stream", given.stream == CU_STREAM_PER_THREAD);
}

// Callbacks are queued behind a kernel that fails later. The stream is blocked until all of them are queued.
GROUP(callbacks_behind_a_fault, InContext) {
  GraphWork work;
  Gate gate;
  Given first, second, beside;
  Counter function = 0;
  const CUfunction stop = function_of(work.module, "stop");
  CU(cuFuncLoad)(stop);
  CU(cuCtxSynchronize)();
  show("a host function that waits", CU(cuLaunchHostFunc)(work.stream, Gate::hold, &gate));
  show("a trap", CU(cuLaunchKernel)(stop, 1, 1, 1, 1, 1, 1, 0, work.stream, nullptr, nullptr));
  show("a callback behind it", CU(cuStreamAddCallback)(work.stream, Given::take, &first, 0));
  show("a host function behind it", CU(cuLaunchHostFunc)(work.stream, count_call, &function));
  show("another callback", CU(cuStreamAddCallback)(work.stream, Given::take, &second, 0));
  show("an event", CU(cuEventRecord)(work.event, work.stream));
  show("another stream waits", CU(cuStreamWaitEvent)(work.other, work.event, 0));
  show("a callback in the other stream", CU(cuStreamAddCallback)(work.other, Given::take, &beside, 0));
  gate.open = true;
  show("wait", CU(cuStreamSynchronize)(work.stream));
  show("calls of the first callback", settled(first.calls, 1));
  show("its status", first.status);
  show("calls of the second callback", settled(second.calls, 1));
  show("its status", second.status);
  show("calls of the other stream's callback", settled(beside.calls, 1));
  show("its status", beside.status);
  show("calls of the host function", settled(function, 1));
  Given late;
  show("a callback after the fault", CU(cuStreamAddCallback)(work.stream, Given::take, &late, 0));
  show("a host function after the fault", CU(cuLaunchHostFunc)(work.stream, count_call, &function));
  show("no function after the fault", CU(cuLaunchHostFunc)(work.stream, nullptr, nullptr));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  show("calls of the late callback", late.calls);
  show("calls of the host function, in the end", function);
}

// ---- callbacks for the log -----------------------------------------------------------------------------------------

Counter logged = 0;
void count_log(void*, CUlogLevel, char*, std::size_t) { ++logged; }

GROUP(log_callbacks, InContext) {
  CUlogsCallbackHandle handle = nullptr, other = nullptr;
  CUdeviceptr a = 0;
  show("no callback", CU(cuLogsRegisterCallback)(nullptr, nullptr, &handle));
  show("a callback", CU(cuLogsRegisterCallback)(count_log, nullptr, &handle));
  show_flag("a handle", handle != nullptr);
  show("the callback again", CU(cuLogsRegisterCallback)(count_log, nullptr, &other));
  show_flag("another handle", handle != other);
  show("a refused call", CU(cuMemAlloc_v2)(&a, 0));
  show("end it", CU(cuLogsUnregisterCallback)(handle));
  show("end the second", CU(cuLogsUnregisterCallback)(other));
  show("end null", CU(cuLogsUnregisterCallback)(nullptr));
  logged = 0;
  show("a refused call", CU(cuMemAlloc_v2)(&a, 0));
  show("calls of the ended callback", logged);
  show_guarded("no handle", [] { return CU(cuLogsRegisterCallback)(count_log, nullptr, nullptr); });
  show_guarded("end it twice", [&] { return CU(cuLogsUnregisterCallback)(handle); });
}

GROUP(logs, InContext) {
  CUlogIterator all = 0, now = 0;
  char text[25600];
  std::size_t size = sizeof text;
  show("the current place", CU(cuLogsCurrent)(&all, 0));
  show("flags 1", CU(cuLogsCurrent)(&now, 1));
  const auto to_memory = CU(cuLogsDumpToMemory);
  show("to memory", to_memory(nullptr, text, &size, 0));
  show_flag("it fits", size <= sizeof text);
  size = sizeof text;
  show("to memory from a place", to_memory(&all, text, &size, 0));
  show("bytes behind the last place", static_cast<long long>(size));
  size = sizeof text;
  show("to memory, flags 1", to_memory(nullptr, text, &size, 1));
  size = 0;
  show("to no bytes", to_memory(nullptr, text, &size, 0));
  size = 8;
  show("to eight bytes", to_memory(nullptr, text, &size, 0));
  const std::string path = file_of("");
  show("to a file", CU(cuLogsDumpToFile)(nullptr, path.c_str(), 0));
  show("to a file, flags 1", CU(cuLogsDumpToFile)(nullptr, path.c_str(), 1));
  show("to a file from a place", CU(cuLogsDumpToFile)(&all, path.c_str(), 0));
  show("to a folder that is not there", CU(cuLogsDumpToFile)(nullptr, "/nothing/here", 0));
  show_guarded("no place", [] { return CU(cuLogsCurrent)(nullptr, 0); });
  show_guarded("to no file", [] { return CU(cuLogsDumpToFile)(nullptr, nullptr, 0); });
  show_guarded("to no memory", [&] { return to_memory(nullptr, nullptr, &size, 0); });
  show_guarded("to memory of no size", [&] { return to_memory(nullptr, text, nullptr, 0); });
}

void take_notification(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}

GROUP(async_notifications, InContext) {
  CUasyncCallbackHandle handle = nullptr, other = nullptr;
  const auto add = CU(cuDeviceRegisterAsyncNotification);
  const auto end = CU(cuDeviceUnregisterAsyncNotification);
  show("no callback", add(device, nullptr, nullptr, &handle));
  show("a device that is not there", add(99, take_notification, nullptr, &handle));
  show("a callback", add(device, take_notification, nullptr, &handle));
  show_flag("a handle", handle != nullptr);
  show("the callback again", add(device, take_notification, nullptr, &other));
  show_flag("another handle", handle != other);
  show("end of a device that is not there", end(99, other));
  show("end it", end(device, handle));
  show("end the second", end(device, other));
  show("end null", end(device, nullptr));
  show_guarded("no handle", [&] { return add(device, take_notification, nullptr, nullptr); });
  show_guarded("end it twice", [&] { return end(device, handle); });
}

}  // namespace
}  // namespace contract
