#include "host/untrusted/callbacks/host_calls.h"

#include "host/untrusted/callbacks/callback_slots.h"
#include "ring/base/mutex.h"

namespace host {

void HostCalls::close() {
  const ring::WriterLock lock(mutex_);
  callback_slots_ = nullptr;
}

void HostCalls::call(ring::CallbackKind kind, std::uint64_t token, CUresult status) {
  const ring::ReaderLock lock(mutex_);
  if (callback_slots_ != nullptr) callback_slots_->call(kind, token, status);
}

void HostCalls::destroyed(std::uint64_t object, std::uint64_t token) {
  const ring::ReaderLock lock(mutex_);
  if (callback_slots_ != nullptr) callback_slots_->destroyed(object, token);
}

void HostCalls::forget(std::uint64_t token) {
  const ring::ReaderLock lock(mutex_);
  if (callback_slots_ != nullptr) callback_slots_->post(ring::CallbackKind::Forget, token);
}

void HostCall::run_again(void* call) noexcept {
  const auto* own = static_cast<HostCall*>(call);
  if (own->calls) own->calls->call(ring::CallbackKind::HostFunction, own->token, CUDA_SUCCESS);
}

void HostCall::end(void* call) noexcept {
  const std::unique_ptr<HostCall> own(static_cast<HostCall*>(call));
  if (own->calls) own->calls->forget(own->token);
}

void HostCall::destroy(void* call) noexcept {
  const std::unique_ptr<HostCall> own(static_cast<HostCall*>(call));
  if (own->calls) own->calls->destroyed(own->object, own->token);
}

void HostCall::run(void* call) noexcept {
  const std::unique_ptr<HostCall> own(static_cast<HostCall*>(call));
  if (own->calls) own->calls->call(ring::CallbackKind::HostFunction, own->token, CUDA_SUCCESS);
}

void HostCall::run_with_status(CUstream, CUresult status, void* call) noexcept {
  const std::unique_ptr<HostCall> own(static_cast<HostCall*>(call));
  if (own->calls) own->calls->call(ring::CallbackKind::StreamCallback, own->token, status);
}

}  // namespace host
