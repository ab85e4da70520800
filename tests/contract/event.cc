// Cases for events.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(events, InContext) {
  CUevent event = nullptr, other = nullptr;
  float ms = 0;
  show("cuEventCreate null", CU(cuEventCreate)(nullptr, 0));
  show("cuEventCreate flags 0x10", CU(cuEventCreate)(&event, 0x10));
  show("cuEventCreate interprocess with timing", CU(cuEventCreate)(&event, CU_EVENT_INTERPROCESS));
  show("cuEventCreate", CU(cuEventCreate)(&event, 0));
  CU(cuEventCreate)(&other, CU_EVENT_DISABLE_TIMING);
  show("cuEventQuery not recorded", CU(cuEventQuery)(event));
  show("cuEventSynchronize not recorded", CU(cuEventSynchronize)(event));
  show("cuStreamWaitEvent not recorded", CU(cuStreamWaitEvent)(nullptr, event, 0));
  show("cuStreamWaitEvent flags 4", CU(cuStreamWaitEvent)(nullptr, event, 4));
  show("cuStreamWaitEvent null", CU(cuStreamWaitEvent)(nullptr, nullptr, 0));
  show("cuEventElapsedTime not recorded", CU(cuEventElapsedTime_v2)(&ms, event, event));
  show("cuEventRecord", CU(cuEventRecord)(event, nullptr));
  show("cuEventRecordWithFlags 8", CU(cuEventRecordWithFlags)(event, nullptr, 8));
  show("cuEventRecord null", CU(cuEventRecord)(nullptr, nullptr));
  CU(cuEventRecord)(other, nullptr);
  CU(cuCtxSynchronize)();
  show("cuEventElapsedTime", CU(cuEventElapsedTime_v2)(&ms, event, event));
  show("cuEventElapsedTime null", CU(cuEventElapsedTime_v2)(nullptr, event, event));
  show("cuEventElapsedTime without timing", CU(cuEventElapsedTime_v2)(&ms, event, other));
  show("cuEventQuery null", CU(cuEventQuery)(nullptr));
  show("cuEventDestroy null", CU(cuEventDestroy_v2)(nullptr));
  show("cuEventDestroy", CU(cuEventDestroy_v2)(event));
  CU(cuEventDestroy_v2)(other);
}

GROUP(event_times, InContext) {
  CUevent first = nullptr, second = nullptr, untimed = nullptr;
  float ms = -1;
  CU(cuEventCreate)(&first, CU_EVENT_BLOCKING_SYNC);
  CU(cuEventCreate)(&second, 0);
  CU(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING);
  CU(cuEventRecord)(first, nullptr);
  CU(cuEventRecord)(second, nullptr);
  CU(cuEventRecord)(untimed, nullptr);
  CU(cuCtxSynchronize)();
  show("cuEventElapsedTime", CU(cuEventElapsedTime)(&ms, first, second));
  show_flag("not negative", ms >= 0);
  show("cuEventElapsedTime_v2", CU(cuEventElapsedTime_v2)(&ms, first, second));
  show("cuEventElapsedTime null", CU(cuEventElapsedTime)(nullptr, first, second));
  show("cuEventElapsedTime no start", CU(cuEventElapsedTime)(&ms, nullptr, second));
  show("cuEventElapsedTime no end", CU(cuEventElapsedTime)(&ms, first, nullptr));
  show("cuEventElapsedTime_v2 no start", CU(cuEventElapsedTime_v2)(&ms, nullptr, second));
  show("cuEventElapsedTime without timing", CU(cuEventElapsedTime)(&ms, first, untimed));
  show("cuEventElapsedTime_v2 without timing", CU(cuEventElapsedTime_v2)(&ms, untimed, second));
  show("cuEventQuery", CU(cuEventQuery)(first));
  show("cuEventSynchronize", CU(cuEventSynchronize)(second));
  show("cuEventSynchronize null", CU(cuEventSynchronize)(nullptr));
  show("cuEventRecordWithFlags", CU(cuEventRecordWithFlags)(first, nullptr, 0));
  show("cuEventRecordWithFlags external", CU(cuEventRecordWithFlags)(first, nullptr, CU_EVENT_RECORD_EXTERNAL));
  show("cuEventRecordWithFlags null", CU(cuEventRecordWithFlags)(nullptr, nullptr, 0));
  show("cuEventRecord on the legacy stream", CU(cuEventRecord)(first, CU_STREAM_LEGACY));
  show("cuEventRecord on the thread's stream", CU(cuEventRecord)(first, CU_STREAM_PER_THREAD));
  show("cuEventSynchronize", CU(cuEventSynchronize)(first));
  for (const unsigned flags : {1U, 2U, 3U, 4U, 6U, 7U, 8U})
    show("cuEventCreate flags " + std::to_string(flags), CU(cuEventCreate)(&second, flags));
}

}  // namespace
}  // namespace contract
