// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0
// The broker's report of a VM's GPUs to the VM's programs, in the region's header area (ring/layout/layout_c.h). Plain
// C11, too.
//
// A guest copies both structs before it looks at them, ends each text with a NUL itself, and trusts no count beyond the
// arrays. Memory is in bytes; a fact's unit is in ring/nvml/facts.def.
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
//   Then it copies this page and the GPUs after it. They are one answer if `sequence` was even before (acquire) and is
//   the same after.
// Only programs of the VM trust this page.
#define IVGPU_VM_PAGE_VERSION 2  // 1: no VmGpu follows the page
struct IvgpuVmPage {
  uint32_t version;                   // broker: IVGPU_VM_PAGE_VERSION
  uint32_t sequence;                  // broker: odd while it writes
  uint32_t answered;                  // broker: the value of `gpu_questions` when it collected this
  uint32_t gpu_count;                 // 0..IVGPU_MAX_DEVICES
  uint32_t cuda_version;              // of the host's driver, as from cuDriverGetVersion; 0: unknown
  char driver[76];                    // its release, for example "580.159.04", NUL-terminated; "": unknown
  uint8_t reserved[IVGPU_PAGE - 96];  // 0
};

#define IVGPU_MAX_FACTS 64  // a bit each in `known`
enum IvgpuGpuState {
  IVGPU_GPU_UNKNOWN,  // only its names are known
  IVGPU_GPU_THERE,
};

// One of the VM's GPUs, in the order of CUDA's ordinals (CUDA_DEVICE_ORDER=PCI_BUS_ID). Memory: the VM's quota, and the
// use of its sessions; without a quota, the GPU's own.
struct IvgpuVmGpu {
  char uuid[96];  // "GPU-..." or "MIG-..."; this and the next three are NUL-terminated; "": unknown
  char name[64];
  char bus_id[32];  // "00000000:81:00.0"
  char vbios[24];
  uint64_t memory_total, memory_reserved, memory_free;  // bytes
  uint64_t known;                                       // bit k: fact[k] is valid
  uint32_t fact[IVGPU_MAX_FACTS];                       // ring/nvml/facts.def
  uint64_t used_by[IVGPU_MAX_SLOTS];                    // bytes that the session in a slot holds
  uint32_t state;                                       // IvgpuGpuState
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
