/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's own structures. The locks have this order: a process's mmap
 * lock, a device's mutex, a page's lock (or, without pages, fault_lock), a
 * slot's lock. No data is copied to or from a program under any of these
 * locks.
 *
 * Trust: the host writes the region, and a program may write its own slot. The
 * module copies each value once and checks the copy. A wrong value affects
 * only the program that owns the slot.
 */
#ifndef IVGPU_H
#define IVGPU_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "ring/layout/module_c.h"

#define IVGPU_RELEASE "0.1.0"

struct ivgpu_opener;

struct ivgpu_slot {
	spinlock_t lock;		/* guards all but `pinned`; interrupts take it */
	struct ivgpu_opener *opener;	/* also guarded by the device's mutex */
	u32 *words;			/* the slot below its arena, while owned */
	struct list_head sleepers;
	unsigned int sleeping;
	bool pinned;			/* under the device's mutex: pages outlive the owner */
};

struct ivgpu_vector {
	struct ivgpu_device *dev;
	unsigned int index;
	char name[24];
};

struct ivgpu_device {
	struct device dev;
	struct cdev cdev;
	struct kref users;		/* one for the binding, one for each opener */
	struct pci_dev *pdev;		/* while the device is bound */
	struct mutex mutex;		/* claims, releases, `openers`, `gone` */
	struct srcu_struct srcu;	/* around accesses to the device's memory */
	bool gone;
	struct list_head openers;

	/* Checked when the device was bound; they do not change. */
	u64 region_bytes, first_slot, slot_bytes;
	unsigned int slot_count;
	bool no_doorbell;
	u32 peer;
	u64 boot;			/* identifies this binding in owners */

	void __iomem *registers;
	phys_addr_t memory;		/* BAR2 */
	struct dev_pagemap pagemap;
	bool pages;			/* the region has struct pages */
	struct rw_semaphore fault_lock;	/* without pages: orders faults and revoking */
	struct IvgpuRegionHeader *header;
	struct IvgpuSlotEntry *entries;
	struct inode *inode;		/* its mapping has all mappings of the region */

	unsigned int device_vectors, vectors;
	struct ivgpu_vector vector[IVGPU_MAX_SLOTS];
	struct delayed_work unpin;
	struct ivgpu_slot slot[IVGPU_MAX_SLOTS];
};

/* An open file of /dev/ivgpuN. */
struct ivgpu_opener {
	struct ivgpu_device *dev;
	struct list_head node;
	int slot;			/* -1: none; under the device's mutex */
	unsigned long claims;		/* number of claims; a mapping belongs to one claim */
	u32 word;			/* the slot's word at the claim */
	struct pid *process;		/* the process that has claimed the slot */
	wait_queue_head_t wait;
	atomic64_t signalled;		/* interrupts since the last read() */
	struct eventfd_ctx *eventfd;	/* under the device's mutex and its slot's lock */
	struct list_head zeros;		/* under the device's mutex; linked by `lru` */
};

/* main.c */
struct inode *ivgpu_new_inode(void);
int ivgpu_add_node(struct ivgpu_device *dev);
void ivgpu_remove_node(struct ivgpu_device *dev);
extern bool ivgpu_no_pages;
extern struct class ivgpu_class;

/* device.c */
extern struct pci_driver ivgpu_driver;
void ivgpu_put(struct ivgpu_device *dev);
void ivgpu_ring(struct ivgpu_device *dev, unsigned int peer);

/* region.c */
int ivgpu_read_header(struct ivgpu_device *dev);
bool ivgpu_same_region(struct ivgpu_device *dev);
int ivgpu_map_region(struct ivgpu_device *dev);
void ivgpu_unmap_region(struct ivgpu_device *dev);
void *ivgpu_map_memory(struct ivgpu_device *dev, u64 offset, size_t bytes);
void ivgpu_unmap_memory(struct ivgpu_device *dev, void *at);
bool ivgpu_in_use(struct ivgpu_device *dev, u64 offset, u64 bytes);

/* file.c */
extern const struct file_operations ivgpu_file_operations;

/* slots.c */
int ivgpu_claim(struct ivgpu_opener *opener, struct IvgpuModuleClaim *claim);
void ivgpu_end_slot(struct ivgpu_opener *opener);
void ivgpu_end_all(struct ivgpu_device *dev);
void ivgpu_free_orphans(struct ivgpu_device *dev);
void ivgpu_look_at_pins(struct work_struct *work);
u64 ivgpu_slot_start(struct ivgpu_device *dev, unsigned int slot);

/* mapping.c */
int ivgpu_mmap(struct file *file, struct vm_area_struct *vma);
void ivgpu_put_zeros(struct ivgpu_opener *opener, bool all);
void ivgpu_revoke(struct ivgpu_device *dev, u64 offset, u64 bytes);

/* wakes.c */
void ivgpu_take_vectors(struct ivgpu_device *dev);
void ivgpu_free_vectors(struct ivgpu_device *dev);
void ivgpu_slot_signalled(struct ivgpu_slot *slot);
void ivgpu_wake_sleepers(struct ivgpu_slot *slot, int result);
int ivgpu_wait(struct ivgpu_opener *opener, const struct IvgpuModuleWait *wait);

#endif
