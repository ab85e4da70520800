// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts, and the threads that sleep until an interrupt. A device may have
 * fewer vectors than slots. Slots then share a vector, and an interrupt counts
 * for all of them.
 *
 * No wake-up is lost: the worker changes the word and then rings. A sleeper
 * joins the slot's list and checks the word under the slot's lock; an
 * interrupt checks the words of the list under the same lock. If the interrupt
 * came first, the sleeper sees the worker's earlier write; otherwise the
 * interrupt finds the sleeper in the list.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "ivgpu.h"

/* On the stack of a waiting thread; guarded by the slot's lock. */
struct sleeper {
	struct list_head node;
	const u32 *word;
	u32 expected;
	struct task_struct *thread;
	int result;
};

#define ASLEEP 1		/* sleeper::result until it is woken */

/*
 * Wakes sleepers. `result` 0: wakes sleepers whose word has changed; an error:
 * wakes all sleepers. Preconditions: the slot's lock is held.
 */
void ivgpu_wake_sleepers(struct ivgpu_slot *slot, int result)
{
	struct sleeper *sleeper, *next;

	list_for_each_entry_safe(sleeper, next, &slot->sleepers, node) {
		if (!result && READ_ONCE(*sleeper->word) == sleeper->expected)
			continue;
		list_del_init(&sleeper->node);
		--slot->sleeping;
		WRITE_ONCE(sleeper->result, result);
		wake_up_process(sleeper->thread);
	}
}

void ivgpu_slot_signalled(struct ivgpu_slot *slot)
{
	unsigned long flags;

	spin_lock_irqsave(&slot->lock, flags);
	if (slot->opener) {
		ivgpu_wake_sleepers(slot, 0);
		atomic64_inc(&slot->opener->signalled);
		if (slot->opener->eventfd)
			ivgpu_signal_eventfd(slot->opener->eventfd);
		wake_up_all(&slot->opener->wait);
	}
	spin_unlock_irqrestore(&slot->lock, flags);
}

static irqreturn_t interrupt(int irq, void *argument)
{
	struct ivgpu_vector *vector = argument;
	struct ivgpu_device *dev = vector->dev;
	unsigned int k;

	for (k = vector->index; k < dev->slot_count; k += dev->device_vectors)
		ivgpu_slot_signalled(&dev->slot[k]);
	return IRQ_HANDLED;
}

/*
 * Allocates an interrupt for each slot, or none: a program without its
 * interrupt would sleep for ever, and could not notice.
 */
void ivgpu_take_vectors(struct ivgpu_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int count = dev->no_doorbell ? 0 : pci_msix_vec_count(pdev);
	unsigned int wanted, k;
	int error;

	if (count <= 0)
		return;
	dev->device_vectors = count;
	wanted = min(dev->device_vectors, dev->slot_count);
	/* MSI-X needs bus mastering: an interrupt is a write by the device. */
	pci_set_master(pdev);
	error = pci_alloc_irq_vectors(pdev, wanted, wanted, PCI_IRQ_MSIX);
	if (error < 0)
		goto none;
	for (k = 0; k < wanted; ++k) {
		struct ivgpu_vector *vector = &dev->vector[k];

		vector->dev = dev;
		vector->index = k;
		snprintf(vector->name, sizeof(vector->name), "ivgpu-%u", k);
		error = request_irq(pci_irq_vector(pdev, k), interrupt, 0, vector->name, vector);
		if (error)
			goto undo;
	}
	dev->vectors = wanted;
	return;

undo:
	while (k--)
		free_irq(pci_irq_vector(pdev, k), &dev->vector[k]);
	pci_free_irq_vectors(pdev);
none:
	pci_clear_master(pdev);
	dev_info(&pdev->dev, "%u interrupts are not to be had: %d\n", wanted, error);
}

void ivgpu_free_vectors(struct ivgpu_device *dev)
{
	unsigned int k;

	if (!dev->vectors)
		return;
	for (k = 0; k < dev->vectors; ++k)
		free_irq(pci_irq_vector(dev->pdev, k), &dev->vector[k]);
	pci_free_irq_vectors(dev->pdev);
	pci_clear_master(dev->pdev);
	dev->vectors = 0;
}

/* Returns 0 if the sleeper is in the slot's list. */
static int join(struct ivgpu_slot *slot, struct ivgpu_opener *opener,
		struct sleeper *sleeper, u64 offset)
{
	int result = 0;

	spin_lock_irq(&slot->lock);
	if (slot->opener != opener) {
		result = -ENODEV;
	} else if (READ_ONCE(slot->words[offset / sizeof(u32)]) != sleeper->expected) {
		result = -EAGAIN;
	} else if (slot->sleeping == IVGPU_MAX_SLEEPERS) {
		result = -ENOSPC;
	} else {
		sleeper->word = &slot->words[offset / sizeof(u32)];
		list_add_tail(&sleeper->node, &slot->sleepers);
		++slot->sleeping;
	}
	spin_unlock_irq(&slot->lock);
	return result;
}

/* After this has taken the lock, no waker uses the sleeper. */
static int leave(struct ivgpu_slot *slot, struct sleeper *sleeper)
{
	int result;

	spin_lock_irq(&slot->lock);
	result = sleeper->result;
	if (result == ASLEEP) {
		list_del(&sleeper->node);
		--slot->sleeping;
	}
	spin_unlock_irq(&slot->lock);
	return result;
}

static ktime_t expiry(u64 timeout_ns)
{
	/* A time beyond the clock's range means no limit. */
	if (timeout_ns > KTIME_MAX)
		return KTIME_MAX;
	return ktime_add_safe(ktime_get(), ns_to_ktime(timeout_ns));
}

int ivgpu_wait(struct ivgpu_opener *opener, const struct IvgpuModuleWait *wait)
{
	struct sleeper sleeper = {
		.expected = wait->expected,
		.thread = current,
		.result = ASLEEP,
	};
	int k = READ_ONCE(opener->slot), result, late = -EINTR;
	ktime_t until = expiry(wait->timeout_ns);
	struct ivgpu_slot *slot;

	if (k < 0)
		return -ENODEV;
	slot = &opener->dev->slot[k];
	result = join(slot, opener, &sleeper, wait->offset);
	if (result)
		return result;
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(sleeper.result) != ASLEEP || signal_pending(current))
			break;
		if (!schedule_hrtimeout_range(&until, current->timer_slack_ns,
					      HRTIMER_MODE_ABS)) {
			late = -ETIMEDOUT;
			break;
		}
	}
	__set_current_state(TASK_RUNNING);
	result = leave(slot, &sleeper);
	return result == ASLEEP ? late : result;
}
