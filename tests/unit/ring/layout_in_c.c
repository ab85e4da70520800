// The layout in plain C11, as a kernel module compiles it. One half of the test is that this file compiles without a
// warning. tests/unit/ring/layout_test.cc compares the sizes.
#include "ring/layout/layout_c.h"
#include "ring/layout/module_c.h"
#include "ring/layout/vm_page_c.h"

const size_t ivgpu_sizes_in_c[] = {sizeof(struct IvgpuRegionHeader), sizeof(struct IvgpuSlotOwner),
                                   sizeof(struct IvgpuSlotEntry),    sizeof(struct IvgpuVmPage),
                                   sizeof(struct IvgpuVmGpu),        sizeof(struct IvgpuSlotHeader),
                                   sizeof(struct IvgpuDeviceInfo),   sizeof(struct IvgpuDevicePage),
                                   sizeof(struct IvgpuCallbackSlot), sizeof(struct IvgpuChannelControl)};
const uint64_t ivgpu_numbers_in_c[] = {
    IVGPU_REGION_MAGIC,   IVGPU_SLOT_MAGIC,   IVGPU_LAYOUT_VERSION, IVGPU_ARENA_OFFSET,
    IVGPU_CHANNEL_BYTES,  IVGPU_FIRST_WINDOW, IVGPU_WINDOW_BYTES,   IVGPU_CALLBACK_SLOTS_OFFSET,
    IVGPU_VM_PAGE_OFFSET, IVGPU_SLOT_CLAIMED, IVGPU_VM_GPUS_OFFSET, IVGPU_HEADER_AREA_BYTES};

// The worker's half and the guest's half of a callback slot, in C.
int ivgpu_callback_slot_is_free(const struct IvgpuCallbackSlot* callback_slot) {
  return callback_slot->done == callback_slot->sequence;
}
