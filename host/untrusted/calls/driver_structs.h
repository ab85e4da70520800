// The driver's structs that are built from a record: the word `built` of GUEST lines (ring/api/pass.h). Precondition of
// all: the record outlives the struct.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>

#include "host/untrusted/calls/copy_side.h"
#include "host/untrusted/calls/kernel_node.h"
#include "host/untrusted/calls/launch_config.h"

namespace host::calls {

// Builds the driver's struct T from the record R.
template <class T, class R>
class DriverStruct;

template <class R>
class DriverStruct<CUlaunchConfig, R> : public LaunchConfig {
 public:
  using LaunchConfig::LaunchConfig;
};

template <class R>
class DriverStruct<CUDA_KERNEL_NODE_PARAMS, R> : public KernelNode {
 public:
  using KernelNode::KernelNode;
};

// Builds the driver's struct for a copy of rows, and counts the copied bytes.
template <std::derived_from<api::CopyRowsRecord> R>
class DriverStruct<CUDA_MEMCPY3D, R> {
 public:
  explicit DriverStruct(const DecodedRequest<R>& t) : copy_(rows_of(t)) { count_rows(t); }
  const CUDA_MEMCPY3D* get() const { return &copy_; }

 private:
  const CUDA_MEMCPY3D copy_;
};

// Builds the driver's struct for a graph node that copies.
template <std::derived_from<api::CopyNodeRecord> R>
class DriverStruct<CUDA_MEMCPY3D, R> {
 public:
  explicit DriverStruct(const DecodedRequest<R>& t) : copy_(copy_of(t)) {}
  const CUDA_MEMCPY3D* get() const { return &copy_; }

 private:
  const CUDA_MEMCPY3D copy_;
};

template <>
class DriverStruct<CUDA_ARRAY_DESCRIPTOR, api::BindRowsRecord> {
 public:
  explicit DriverStruct(const DecodedRequest<api::BindRowsRecord>& t) {
    std::memset(&rows_, 0, sizeof rows_);
    rows_.Width = t.record.width, rows_.Height = t.record.height;
    rows_.Format = std::bit_cast<CUarray_format>(t.record.format), rows_.NumChannels = t.record.channels;
  }
  const CUDA_ARRAY_DESCRIPTOR* get() const { return &rows_; }

 private:
  CUDA_ARRAY_DESCRIPTOR rows_;
};

}  // namespace host::calls
