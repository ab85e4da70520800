// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// The broker's report about a VM's GPUs to the VM's programs, in the region's header area (ring/layout/layout_c.h).
// This file is plain C11.
//
// A guest copies both structs before it reads them, terminates each text with a NUL itself, and limits each count to
// the size of its array. Memory is in bytes; ring/nvml/facts.def determines a fact's unit.
//
// ```c
// int is_one_answer(const struct IvgpuVmPage* copy, uint32_t sequence_after, uint32_t question) {
//   const int has_come = (int32_t)(copy->answered - question) >= 0;  // the counts run free
//   return has_come && copy->sequence % 2 == 0 && copy->sequence == sequence_after;
// }
// ```
#pragma once

#include "ring/layout/layout_c.h"

// The VM as a whole, for programs without a session that query its GPUs (docs/design/044-nvml.md). The broker writes
// the version before the region's magic, and the rest for each question:
//   A guest increments RegionHeader's `gpu_questions`, rings peer 0, and waits until `answered` has reached its count.
//   Then the guest copies this page and the GPUs after it. The copy is one answer if `sequence` was even before the
//   copy (acquire) and is the same after the copy.
// Only programs of the VM trust this page.
#define IVGPU_VM_PAGE_VERSION 2  // version 1 has no VmGpu after the page
struct IvgpuVmPage {
  uint32_t version;                   // broker: IVGPU_VM_PAGE_VERSION
  uint32_t sequence;                  // broker: odd while the broker writes
  uint32_t answered;                  // broker: the value of `gpu_questions` when the broker collected the data
  uint32_t gpu_count;                 // 0..IVGPU_MAX_DEVICES
  uint32_t cuda_version;              // of the host's driver, as cuDriverGetVersion returns it; 0: unknown
  char driver[76];                    // the driver's release, for example "580.159.04", NUL-terminated; "": unknown
  uint8_t reserved[IVGPU_PAGE - 96];  // 0
};

#define IVGPU_MAX_FACTS 64  // one bit for each fact in `known`
enum IvgpuGpuState {
  IVGPU_GPU_UNKNOWN,  // only the GPU's names are known
  IVGPU_GPU_THERE,
};

// One of the VM's GPUs, in the order of CUDA's ordinals (CUDA_DEVICE_ORDER=PCI_BUS_ID). The memory is the VM's quota
// and the use of its sessions or, without a quota, the GPU's own memory.
struct IvgpuVmGpu {
  char uuid[96];  // "GPU-..." or "MIG-..."; this and the next three members are NUL-terminated; "": unknown
  char name[64];
  char bus_id[32];  // for example "00000000:81:00.0"
  char vbios[24];
  uint64_t memory_total, memory_reserved, memory_free;  // bytes
  uint64_t known;                                       // bit k: fact[k] is valid
  uint32_t fact[IVGPU_MAX_FACTS];                       // indexed by the facts of ring/nvml/facts.def
  uint64_t used_by[IVGPU_MAX_SLOTS];                    // number of bytes that the session in a slot uses
  uint32_t state;                                       // an IvgpuGpuState
  uint32_t reserved;                                    // 0
};

IVGPU_AT(IvgpuVmPage, version, 0);
IVGPU_AT(IvgpuVmPage, sequence, 4);
IVGPU_AT(IvgpuVmPage, answered, 8);
IVGPU_AT(IvgpuVmPage, gpu_count, 12);
IVGPU_AT(IvgpuVmPage, cuda_version, 16);
IVGPU_AT(IvgpuVmPage, driver, 20);
IVGPU_AT(IvgpuVmPage, reserved, 96);
IVGPU_SIZE(IvgpuVmPage, IVGPU_PAGE);
IVGPU_AT(IvgpuVmGpu, uuid, 0);
IVGPU_AT(IvgpuVmGpu, name, 96);
IVGPU_AT(IvgpuVmGpu, bus_id, 160);
IVGPU_AT(IvgpuVmGpu, vbios, 192);
IVGPU_AT(IvgpuVmGpu, memory_total, 216);
IVGPU_AT(IvgpuVmGpu, memory_reserved, 224);
IVGPU_AT(IvgpuVmGpu, memory_free, 232);
IVGPU_AT(IvgpuVmGpu, known, 240);
IVGPU_AT(IvgpuVmGpu, fact, 248);
IVGPU_AT(IvgpuVmGpu, used_by, 504);
IVGPU_AT(IvgpuVmGpu, state, 1016);
IVGPU_AT(IvgpuVmGpu, reserved, 1020);
IVGPU_SIZE(IvgpuVmGpu, 1024);
IVGPU_STATIC_ASSERT(IVGPU_MAX_DEVICES * sizeof(struct IvgpuVmGpu) == IVGPU_VM_GPUS_BYTES, "the GPUs have 16 KiB");
