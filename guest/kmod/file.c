// SPDX-License-Identifier: GPL-2.0-only
/*
 * The system calls on a descriptor of /dev/ivgpuN (ring/layout/module_c.h).
 * Arguments are copied first and answers last, outside of all locks.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ivgpu.h"

static int ivgpu_open(struct inode *inode, struct file *file)
{
	struct ivgpu_device *dev = container_of(inode->i_cdev, struct ivgpu_device, cdev);
	struct ivgpu_opener *opener;

	/* The node may be removed while a program opens it. */
	if (!kref_get_unless_zero(&dev->users))
		return -ENODEV;
	opener = kzalloc(sizeof(*opener), GFP_KERNEL_ACCOUNT);
	if (!opener) {
		ivgpu_put(dev);
		return -ENOMEM;
	}
	opener->dev = dev;
	opener->slot = -1;
	init_waitqueue_head(&opener->wait);
	INIT_LIST_HEAD(&opener->zeros);
	mutex_lock(&dev->mutex);
	if (dev->gone) {
		mutex_unlock(&dev->mutex);
		kfree(opener);
		ivgpu_put(dev);
		return -ENODEV;
	}
	list_add_tail(&opener->node, &dev->openers);
	mutex_unlock(&dev->mutex);
	file->private_data = opener;
	file->f_mapping = dev->inode->i_mapping;
	return nonseekable_open(inode, file);
}

/*
 * Called when a program closes a descriptor. A forked child has a copy of the
 * descriptor, too, so the last close may happen long after the program that
 * claimed the slot has ended. Therefore the end of that program ends the
 * claim, by exit or by an exec that closes the descriptor. Closing a duplicate
 * does not end the claim, nor does the end of a thread with a descriptor table
 * of its own.
 */
static int ivgpu_flush(struct file *file, fl_owner_t id)
{
	struct ivgpu_opener *opener = file->private_data;
	struct ivgpu_device *dev = opener->dev;

	/* When exec closes descriptors, the process has one thread left. */
	if (!current->in_execve && atomic_read(&current->signal->live))
		return 0;
	mutex_lock(&dev->mutex);
	if (opener->slot >= 0 && opener->process == task_tgid(current))
		ivgpu_end_slot(opener);
	mutex_unlock(&dev->mutex);
	return 0;
}

static int ivgpu_release(struct inode *inode, struct file *file)
{
	struct ivgpu_opener *opener = file->private_data;
	struct ivgpu_device *dev = opener->dev;

	mutex_lock(&dev->mutex);
	if (opener->slot >= 0)
		ivgpu_end_slot(opener);
	list_del(&opener->node);
	ivgpu_put_zeros(opener, true);
	mutex_unlock(&dev->mutex);
	if (opener->eventfd)
		eventfd_ctx_put(opener->eventfd);
	put_pid(opener->process);
	kfree(opener);
	ivgpu_put(dev);
	return 0;
}

static long copy_info(struct ivgpu_opener *opener, void __user *to)
{
	struct ivgpu_device *dev = opener->dev;
	struct IvgpuModuleInfo info = {
		.interface = IVGPU_MODULE_INTERFACE,
		.layout = IVGPU_LAYOUT_VERSION,
		.region_bytes = dev->region_bytes,
		.first_slot = dev->first_slot,
		.slot_bytes = dev->slot_bytes,
		.slot_count = dev->slot_count,
		.device_vectors = dev->device_vectors,
		.release = IVGPU_RELEASE,
	};
	bool gone;

	mutex_lock(&dev->mutex);
	gone = dev->gone;
	info.peer = dev->peer;
	info.vectors = dev->vectors;
	info.flags = (dev->vectors ? IVGPU_MODULE_WAKES : 0) |
		     (dev->pages ? IVGPU_MODULE_WRITE_BACK : 0);
	info.slot = opener->slot >= 0 ? opener->slot : IVGPU_NO_SLOT;
	info.word = opener->slot >= 0 ? opener->word : 0;
	mutex_unlock(&dev->mutex);
	if (gone)
		return -ENODEV;
	return copy_to_user(to, &info, sizeof(info)) ? -EFAULT : 0;
}

static long claim_slot(struct ivgpu_opener *opener, void __user *argument)
{
	struct IvgpuModuleClaim claim;
	int error;

	if (copy_from_user(&claim, argument, sizeof(claim)))
		return -EFAULT;
	if (claim.reserved)
		return -EINVAL;
	claim.name[sizeof(claim.name) - 1] = '\0';
	error = ivgpu_claim(opener, &claim);
	if (error)
		return error;
	/* The program can still query its slot's number, and close. */
	return copy_to_user(argument, &claim, sizeof(claim)) ? -EFAULT : 0;
}

static long release_slot(struct ivgpu_opener *opener)
{
	struct ivgpu_device *dev = opener->dev;
	long result = -ENODEV;

	mutex_lock(&dev->mutex);
	if (opener->slot >= 0) {
		ivgpu_end_slot(opener);
		result = 0;
	}
	mutex_unlock(&dev->mutex);
	return result;
}

static long ring_host(struct ivgpu_opener *opener, unsigned long which)
{
	struct ivgpu_device *dev = opener->dev;
	int slot = READ_ONCE(opener->slot), srcu;
	long result = -ENODEV;

	if (which > IVGPU_RING_GPUS)
		return -EINVAL;
	if (which == IVGPU_RING_WORKER && slot < 0)
		return -ENODEV;
	srcu = srcu_read_lock(&dev->srcu);
	if (!READ_ONCE(dev->gone)) {
		/* Counted before the ring: the broker answers all counted questions. */
		if (which == IVGPU_RING_GPUS)
			atomic_inc((atomic_t *)&dev->header->gpu_questions);
		ivgpu_ring(dev, which == IVGPU_RING_WORKER ? 1 + slot : 0);
		result = 0;
	}
	srcu_read_unlock(&dev->srcu, srcu);
	return result;
}

static long set_eventfd(struct ivgpu_opener *opener, int fd)
{
	struct ivgpu_device *dev = opener->dev;
	struct eventfd_ctx *eventfd = NULL;
	long result = 0;

	if (fd >= 0) {
		eventfd = eventfd_ctx_fdget(fd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	} else if (fd != -1) {
		return -EINVAL;
	}
	mutex_lock(&dev->mutex);
	if (dev->gone) {
		result = -ENODEV;
	} else if (opener->slot >= 0) {
		/* The slot's interrupt may be signalling the old eventfd. */
		spin_lock_irq(&dev->slot[opener->slot].lock);
		swap(opener->eventfd, eventfd);
		spin_unlock_irq(&dev->slot[opener->slot].lock);
	} else {
		swap(opener->eventfd, eventfd);
	}
	mutex_unlock(&dev->mutex);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return result;
}

static long wait_for_word(struct ivgpu_opener *opener, void __user *argument)
{
	struct IvgpuModuleWait wait;

	if (copy_from_user(&wait, argument, sizeof(wait)))
		return -EFAULT;
	if (wait.reserved || wait.offset % sizeof(u32) || wait.offset >= IVGPU_ARENA_OFFSET)
		return -EINVAL;
	return ivgpu_wait(opener, &wait);
}

static long ivgpu_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	struct ivgpu_opener *opener = file->private_data;
	void __user *at = (void __user *)argument;

	if (request == IVGPU_IOC_INFO)
		return copy_info(opener, at);
	if (request == IVGPU_IOC_WAIT)
		return wait_for_word(opener, at);
	if (request != IVGPU_IOC_CLAIM && request != IVGPU_IOC_RELEASE &&
	    request != IVGPU_IOC_RING && request != IVGPU_IOC_EVENTFD)
		return -ENOTTY;
	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (request == IVGPU_IOC_CLAIM)
		return claim_slot(opener, at);
	if (request == IVGPU_IOC_RELEASE)
		return release_slot(opener);
	if (request == IVGPU_IOC_RING)
		return ring_host(opener, argument);
	return set_eventfd(opener, argument);
}

static bool may_read(struct ivgpu_opener *opener)
{
	return atomic64_read(&opener->signalled) || READ_ONCE(opener->slot) < 0 ||
	       READ_ONCE(opener->dev->gone);
}

static ssize_t ivgpu_read(struct file *file, char __user *to, size_t bytes, loff_t *offset)
{
	struct ivgpu_opener *opener = file->private_data;
	u64 count;

	if (bytes < sizeof(count))
		return -EINVAL;
	for (;;) {
		if (READ_ONCE(opener->dev->gone))
			return -ENODEV;
		count = atomic64_xchg(&opener->signalled, 0);
		if (count)
			break;
		if (READ_ONCE(opener->slot) < 0)
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(opener->wait, may_read(opener)))
			return -ERESTARTSYS;
	}
	return copy_to_user(to, &count, sizeof(count)) ? -EFAULT : sizeof(count);
}

static __poll_t ivgpu_poll(struct file *file, struct poll_table_struct *table)
{
	struct ivgpu_opener *opener = file->private_data;

	poll_wait(file, &opener->wait, table);
	if (READ_ONCE(opener->dev->gone))
		return EPOLLHUP | EPOLLERR;
	return may_read(opener) ? EPOLLIN | EPOLLRDNORM : 0;
}

const struct file_operations ivgpu_file_operations = {
	.owner = THIS_MODULE,
	.open = ivgpu_open,
	.flush = ivgpu_flush,
	.release = ivgpu_release,
	.unlocked_ioctl = ivgpu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = ivgpu_read,
	.poll = ivgpu_poll,
	.mmap = ivgpu_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
};
