// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of the region in programs. Each fault decides whether a mapping may
 * show the slot: the slot must still belong to the mapping's descriptor.
 *
 * A fault races with ivgpu_revoke(). The fault checks the slot under the
 * page's lock, and keeps the lock until the page is in the page table.
 * ivgpu_revoke() first writes that the slot is gone, then takes each page's
 * lock. No later fault finds the slot; the pages of earlier faults are zapped
 * from the page tables.
 *
 * A mapping belongs to one claim and ends with the claim. The part that only a
 * library reads then shows zeros, since a library cannot catch SIGBUS. The
 * program's own memory raises SIGBUS, since the program could not distinguish
 * zeros from data. Zeros appear only once no page of the slot is mapped: a
 * reader that finds one page of zeros finds zeros everywhere.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"
#include "ivgpu.h"

/* Returns the slot that contains [offset, offset + bytes), or -1. */
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

static bool may_reach(struct vm_area_struct *vma, u64 offset)
{
	struct ivgpu_opener *opener = vma->vm_file->private_data;
	struct ivgpu_device *dev = opener->dev;
	int slot;

	if (READ_ONCE(dev->gone))
		return false;
	if (offset < IVGPU_HEADER_AREA_BYTES)
		return true;
	slot = slot_of(dev, offset, PAGE_SIZE);
	/* Pairs with take(): the opener becomes visible with its `claims`. */
	return slot >= 0 && smp_load_acquire(&dev->slot[slot].opener) == opener &&
	       (unsigned long)vma->vm_private_data == READ_ONCE(opener->claims);
}

static vm_fault_t insert_page(struct ivgpu_device *dev, struct vm_fault *vmf, u64 offset)
{
	struct page *page = pfn_to_page(PHYS_PFN(dev->memory + offset));

	lock_page(page);
	if (!may_reach(vmf->vma, offset)) {
		unlock_page(page);
		return VM_FAULT_SIGBUS;
	}
	get_page(page);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static vm_fault_t insert_frame(struct ivgpu_device *dev, struct vm_fault *vmf, u64 offset)
{
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&dev->fault_lock);
	if (may_reach(vmf->vma, offset))
		result = vmf_insert_pfn(vmf->vma, vmf->address, PHYS_PFN(dev->memory + offset));
	up_read(&dev->fault_lock);
	return result;
}

/* Returns whether only a library reads this page, not a program's data. */
static bool is_quiet(struct ivgpu_device *dev, u64 offset)
{
	int slot = slot_of(dev, offset, PAGE_SIZE);

	return slot < 0 || offset - ivgpu_slot_start(dev, slot) < IVGPU_QUIET_BYTES;
}

/*
 * A fault keeps its page locked for a moment after inserting the page in the
 * page table. Another thread may remove the page at once: by MADV_DONTNEED, or
 * because the slot ends again. Without another reference, a locked page would
 * be freed. Each opener therefore holds a reference until the page is
 * unlocked. Preconditions: the device's mutex is held; with `all`, no fault
 * runs.
 */
void ivgpu_put_zeros(struct ivgpu_opener *opener, bool all)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &opener->zeros, lru) {
		if (!all && PageLocked(page))
			continue;
		list_del(&page->lru);
		put_page(page);
	}
}

/*
 * Provides a page of zeros for one ended mapping. Without struct pages the
 * mapping contains frame numbers, and cannot take a page.
 */
static vm_fault_t insert_zeros(struct ivgpu_device *dev, struct vm_fault *vmf, u64 offset)
{
	struct ivgpu_opener *opener = vmf->vma->vm_file->private_data;
	struct page *page;
	bool ended;

	/* ivgpu_end_slot() keeps the mutex until no page is mapped. */
	mutex_lock(&dev->mutex);
	ended = !may_reach(vmf->vma, offset);
	mutex_unlock(&dev->mutex);
	if (!ended || !dev->pages || !is_quiet(dev, offset))
		return VM_FAULT_SIGBUS;
	page = alloc_page(GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT);
	if (!page)
		return VM_FAULT_OOM;
	mutex_lock(&dev->mutex);
	ivgpu_put_zeros(opener, false);
	lock_page(page);
	get_page(page);
	list_add(&page->lru, &opener->zeros);
	mutex_unlock(&dev->mutex);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct ivgpu_opener *opener = vmf->vma->vm_file->private_data;
	struct ivgpu_device *dev = opener->dev;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t result = VM_FAULT_SIGBUS;
	int srcu;

	srcu = srcu_read_lock(&dev->srcu);
	/* Checked again under the lock; first here: the page may be gone. */
	if (may_reach(vmf->vma, offset))
		result = dev->pages ? insert_page(dev, vmf, offset)
				    : insert_frame(dev, vmf, offset);
	srcu_read_unlock(&dev->srcu, srcu);
	return result == VM_FAULT_SIGBUS ? insert_zeros(dev, vmf, offset) : result;
}

static const struct vm_operations_struct operations = {
	.fault = fault,
};

int ivgpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ivgpu_opener *opener = file->private_data;
	struct ivgpu_device *dev = opener->dev;
	u64 bytes = vma->vm_end - vma->vm_start;
	/*
	 * The mapping cannot grow or be dumped. A forked child keeps the
	 * mapping, since the child could make it again by the descriptor.
	 * VM_DONTCOPY would be final: later kernels (7.x) refuse MADV_DOFORK
	 * with VM_DONTEXPAND.
	 */
	unsigned long set = VM_DONTEXPAND | VM_DONTDUMP;
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
	if (offset < IVGPU_HEADER_AREA_BYTES) {
		if (bytes > IVGPU_HEADER_AREA_BYTES - offset)
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
	vma->vm_private_data = (void *)READ_ONCE(opener->claims);
	vma->vm_ops = &operations;
	return 0;
}

/* Zaps a range from all page tables. No fault may reach the range. */
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
