// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of the region in programs. What a mapping may show is decided at each
 * fault, not when it is made: the slot must still be its descriptor's.
 *
 * Against a race with ivgpu_revoke(): a fault looks under the page's lock, which
 * it keeps until the page is in the page table. Who takes a slot away writes that
 * first, then passes each page's lock: no later fault finds the slot, and all
 * earlier ones are in the page tables, to be taken out of them.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"
#include "ivgpu.h"

/* The slot that `bytes` at `offset` lie in, or -1. */
static int slot_of(struct ivgpu_device *dev, u64 offset, u64 bytes)
{
	u64 slot;

	if (offset < dev->first_slot)
		return -1;
	slot = div64_u64(offset - dev->first_slot, dev->slot_bytes);
	if (slot >= dev->slot_count ||
	    bytes > ivgpu_slot_start(dev, slot) + dev->slot_bytes - offset)
		return -1;
	return slot;
}

static bool may_reach(struct ivgpu_opener *opener, u64 offset)
{
	struct ivgpu_device *dev = opener->dev;
	int slot;

	if (READ_ONCE(dev->gone))
		return false;
	if (offset < IVGPU_HEADER_BYTES)
		return true;
	slot = slot_of(dev, offset, PAGE_SIZE);
	return slot >= 0 && READ_ONCE(dev->slot[slot].opener) == opener;
}

static vm_fault_t insert_page(struct ivgpu_opener *opener, struct vm_fault *vmf, u64 offset)
{
	struct page *page = pfn_to_page(PHYS_PFN(opener->dev->memory + offset));

	lock_page(page);
	if (!may_reach(opener, offset)) {
		unlock_page(page);
		return VM_FAULT_SIGBUS;
	}
	get_page(page);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static vm_fault_t insert_frame(struct ivgpu_opener *opener, struct vm_fault *vmf, u64 offset)
{
	struct ivgpu_device *dev = opener->dev;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&dev->fault_lock);
	if (may_reach(opener, offset))
		result = vmf_insert_pfn(vmf->vma, vmf->address, PHYS_PFN(dev->memory + offset));
	up_read(&dev->fault_lock);
	return result;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct ivgpu_opener *opener = vmf->vma->vm_file->private_data;
	struct ivgpu_device *dev = opener->dev;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t result = VM_FAULT_SIGBUS;
	int srcu;

	srcu = srcu_read_lock(&dev->srcu);
	/* Once more under the lock; here, because the page may be there no more. */
	if (may_reach(opener, offset))
		result = dev->pages ? insert_page(opener, vmf, offset)
				    : insert_frame(opener, vmf, offset);
	srcu_read_unlock(&dev->srcu, srcu);
	return result;
}

static const struct vm_operations_struct operations = {
	.fault = fault,
};

int ivgpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ivgpu_opener *opener = file->private_data;
	struct ivgpu_device *dev = opener->dev;
	u64 bytes = vma->vm_end - vma->vm_start;
	/* Its pages cannot be grown into, dumped, or inherited. */
	unsigned long set = VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;
	unsigned long clear = VM_MAYEXEC;
	u64 offset;
	int slot;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (vma->vm_pgoff > PHYS_PFN(dev->region_bytes))
		return -EINVAL;
	offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	if (offset < IVGPU_HEADER_BYTES) {
		if (bytes > IVGPU_HEADER_BYTES - offset)
			return -EINVAL;
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		clear |= VM_MAYWRITE;
	} else {
		slot = slot_of(dev, offset, bytes);
		if (slot < 0)
			return -EINVAL;
		if (slot != READ_ONCE(opener->slot))
			return -EACCES;
	}
	if (READ_ONCE(dev->gone))
		return -ENODEV;
	if (!dev->pages)
		set |= VM_PFNMAP;
	ivgpu_change_vm_flags(vma, set, clear);
	vma->vm_ops = &operations;
	return 0;
}

/* Takes a part of the region out of all page tables. Nobody may reach it now. */
void ivgpu_revoke(struct ivgpu_device *dev, u64 offset, u64 bytes)
{
	u64 at;

	if (dev->pages) {
		for (at = offset; at < offset + bytes; at += IVGPU_HUGE_PAGE) {
			struct page *page = pfn_to_page(PHYS_PFN(dev->memory + at));

			lock_page(page);
			unlock_page(page);
		}
	} else {
		down_write(&dev->fault_lock);
		up_write(&dev->fault_lock);
	}
	unmap_mapping_range(dev->inode->i_mapping, offset, bytes, 1);
}
