/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels that the module supports, 6.1 and later. No
 * other file checks a kernel version.
 */
#ifndef IVGPU_COMPAT_H
#define IVGPU_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/version.h>

static inline void ivgpu_change_vm_flags(struct vm_area_struct *vma,
					 unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

static inline void ivgpu_signal_eventfd(struct eventfd_ctx *eventfd)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	eventfd_signal(eventfd);
#else
	eventfd_signal(eventfd, 1);
#endif
}

#endif
