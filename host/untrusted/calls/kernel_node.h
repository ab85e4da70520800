// The kernel node of a record, for the driver's calls that add or change a node. Precondition: the record outlives the
// object.
#pragma once

#include "host/untrusted/calls/parameters.h"
#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

class KernelNode {
 public:
  template <class R>
  explicit KernelNode(const DecodedRequest<R>& t) : KernelNode(t, t.record) {}
  KernelNode(const KernelNode&) = delete;
  KernelNode& operator=(const KernelNode&) = delete;

  const CUDA_KERNEL_NODE_PARAMS_v2* get() const { return &params_; }

 private:
  // Returns the id of the function, or of the kernel that the program passed as a function.
  static std::uint64_t id_of(const api::KernelNodeParams& given) {
    return given.function != 0 ? given.function : given.kernel;
  }
  template <class R>
  KernelNode(const DecodedRequest<R>& t, const api::KernelNodeParams& given)
      : function_(t.template handle<CUfunction>(&api::KernelNodeParams::function)),
        kernel_(t.template handle<CUkernel>(&api::KernelNodeParams::kernel)),
        parameters_(t.session(), id_of(given), function_ != nullptr ? function_ : reinterpret_cast<CUfunction>(kernel_),
                    t.behind(&api::KernelNodeParams::param_bytes), given.param_bytes, given.used_extra == 0),
        params_{.func = function_,
                .gridDimX = given.grid[0],
                .gridDimY = given.grid[1],
                .gridDimZ = given.grid[2],
                .blockDimX = given.block[0],
                .blockDimY = given.block[1],
                .blockDimZ = given.block[2],
                .sharedMemBytes = given.shared,
                .kernelParams = parameters_.each(),
                .extra = parameters_.extra(),
                .kern = kernel_,
                .ctx = nullptr} {}

  const CUfunction function_;
  const CUkernel kernel_;
  Parameters parameters_;
  const CUDA_KERNEL_NODE_PARAMS_v2 params_;
};

}  // namespace host::calls
