// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims and ends of slots: a guest's steps in the region's directory
 * (ring/layout/layout_c.h). Each step is one compare-and-swap from a word that
 * was read before. All functions run under the device's mutex.
 *
 * Giving a slot back first revokes it from its sleepers, then from all
 * mappings. Only then does the host learn of the end, and may scrub the slot.
 * The host must not scrub pages that the kernel or a device still uses: the
 * entry's `pinned` is set until these pages are released.
 */
#include <linux/hrtimer.h>
#include <linux/pid_namespace.h>
#include <linux/proc_ns.h>
#include <linux/sched/signal.h>

#include "ivgpu.h"

#define STATE_MASK ((1U << IVGPU_SLOT_STATE_BITS) - 1)
#define UNPIN_PERIOD_MS 10
#define CLAIM_SLEEP_NS NSEC_PER_MSEC	/* the broker does not signal Ready slots */

/* The unit of a start time in /proc/PID/stat, 10 ms, in nanoseconds. */
#define CLOCK_TICK_NS (NSEC_PER_SEC / 100)

u64 ivgpu_slot_start(struct ivgpu_device *dev, unsigned int slot)
{
	return dev->first_slot + slot * dev->slot_bytes;
}

static u32 with_state(u32 word, u32 state)
{
	return (word & ~STATE_MASK) | state;
}

static bool step(struct IvgpuSlotEntry *entry, u32 word, u32 from, u32 to)
{
	u32 seen = with_state(word, from);

	return cmpxchg(&entry->state, seen, with_state(word, to)) == seen;
}

/* Whether the slot was owned: Claimed if its worker is alive, or Dead. */
static bool give_back(struct IvgpuSlotEntry *entry, u32 word)
{
	return step(entry, word, IVGPU_SLOT_CLAIMED, IVGPU_SLOT_RELEASED) ||
	       step(entry, word, IVGPU_SLOT_DEAD, IVGPU_SLOT_RELEASED);
}

static void sign(struct ivgpu_device *dev, struct IvgpuSlotEntry *entry, const char *name)
{
	/*
	 * Fills in the owner as programs without the module do, for the host's
	 * log and for other programs: these see a foreign boot id and treat
	 * the process as dead. The module leaves no owned slot that such
	 * programs could see.
	 */
	struct IvgpuSlotOwner owner = {
		.boot = dev->boot,
		.pid_space = PROC_PID_INIT_INO,
		.start_time = div_u64(current->group_leader->start_boottime, CLOCK_TICK_NS),
		.pid = task_tgid_nr(current),
		.peer = dev->peer,
	};
	char program[sizeof(entry->program)] = "", comm[TASK_COMM_LEN];

	if (!name[0])
		name = get_task_comm(comm, current->group_leader);
	strscpy(program, name, sizeof(program));
	memcpy(&entry->owner, &owner, sizeof(owner));
	memcpy(entry->program, program, sizeof(program));
}

static bool take(struct ivgpu_opener *opener, unsigned int k, struct IvgpuModuleClaim *claim)
{
	struct ivgpu_device *dev = opener->dev;
	struct IvgpuSlotEntry *entry = &dev->entries[k];
	struct ivgpu_slot *slot = &dev->slot[k];
	u32 seen = READ_ONCE(entry->state);
	u32 *words;

	if ((seen & STATE_MASK) != IVGPU_SLOT_READY)
		return false;
	/* The host has revoked the slot, so its mapping must end. */
	if (slot->opener)
		ivgpu_end_slot(slot->opener);
	if (slot->pinned)
		return false;
	words = ivgpu_map_memory(dev, ivgpu_slot_start(dev, k), IVGPU_ARENA_OFFSET);
	if (!words)
		return false;
	if (!step(entry, seen, IVGPU_SLOT_READY, IVGPU_SLOT_CLAIMED)) {
		ivgpu_unmap_memory(dev, words);
		return false;
	}
	sign(dev, entry, claim->name);
	claim->slot = k;
	claim->word = with_state(seen, IVGPU_SLOT_CLAIMED);

	/* Mappings of earlier claims stay ended. */
	WRITE_ONCE(opener->claims, opener->claims + 1);
	opener->word = claim->word;
	put_pid(opener->process);
	opener->process = get_pid(task_tgid(current));
	atomic64_set(&opener->signalled, 0);
	spin_lock_irq(&slot->lock);
	slot->words = words;
	/* Pairs with may_reach(): makes `claims` visible first. */
	smp_store_release(&slot->opener, opener);
	spin_unlock_irq(&slot->lock);
	WRITE_ONCE(opener->slot, k);
	ivgpu_ring(dev, 0);
	return true;
}

/* Returns -EAGAIN if no slot is Ready. */
static int try_claim(struct ivgpu_opener *opener, struct IvgpuModuleClaim *claim, bool first)
{
	struct ivgpu_device *dev = opener->dev;
	unsigned int k;

	if (dev->gone)
		return -ENODEV;
	if (opener->slot >= 0)
		return -EBUSY;
	for (k = 0; k < dev->slot_count; ++k)
		if (take(opener, k, claim))
			return 0;
	if (first) {
		/* Once per claim: the broker logs requests that it cannot meet. */
		atomic_inc((atomic_t *)&dev->header->wanted);
		ivgpu_ring(dev, 0);
	}
	return -EAGAIN;
}

int ivgpu_claim(struct ivgpu_opener *opener, struct IvgpuModuleClaim *claim)
{
	struct ivgpu_device *dev = opener->dev;
	ktime_t until = ktime_add_ms(ktime_get(), claim->timeout_ms);
	bool first = true;
	int error;

	for (;;) {
		ktime_t timed_sleep = ns_to_ktime(CLAIM_SLEEP_NS);

		mutex_lock(&dev->mutex);
		error = try_claim(opener, claim, first);
		mutex_unlock(&dev->mutex);
		if (error != -EAGAIN)
			return error;
		first = false;
		if (ktime_compare(ktime_get(), until) >= 0)
			return -ETIMEDOUT;
		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout_range(&timed_sleep, CLAIM_SLEEP_NS / 4, HRTIMER_MODE_REL);
		if (signal_pending(current))
			return -EINTR;
	}
}

/* Preconditions: the opener has a slot. The device's mutex is held. */
void ivgpu_end_slot(struct ivgpu_opener *opener)
{
	struct ivgpu_device *dev = opener->dev;
	unsigned int k = opener->slot;
	struct IvgpuSlotEntry *entry = &dev->entries[k];
	struct ivgpu_slot *slot = &dev->slot[k];
	u32 *words;

	spin_lock_irq(&slot->lock);
	WRITE_ONCE(slot->opener, NULL);
	words = slot->words;
	slot->words = NULL;
	ivgpu_wake_sleepers(slot, -ENODEV);
	spin_unlock_irq(&slot->lock);
	WRITE_ONCE(opener->slot, -1);
	ivgpu_unmap_memory(dev, words);
	ivgpu_revoke(dev, ivgpu_slot_start(dev, k), dev->slot_bytes);

	slot->pinned = ivgpu_in_use(dev, ivgpu_slot_start(dev, k), dev->slot_bytes);
	if (slot->pinned) {
		/* Set before the step: the step's release makes it visible. */
		WRITE_ONCE(entry->pinned, 1);
		schedule_delayed_work(&dev->unpin, msecs_to_jiffies(UNPIN_PERIOD_MS));
	}
	if (give_back(entry, opener->word) || slot->pinned)
		ivgpu_ring(dev, 0);
	wake_up_all(&opener->wait);
}

/* Preconditions: the device's mutex is held. */
void ivgpu_end_all(struct ivgpu_device *dev)
{
	struct ivgpu_opener *opener;

	list_for_each_entry(opener, &dev->openers, node)
		if (opener->slot >= 0)
			ivgpu_end_slot(opener);
}

/*
 * Frees slots that this VM owned before the module bound its device, under an
 * earlier kernel or through sysfs. No process can reach these slots any more.
 */
void ivgpu_free_orphans(struct ivgpu_device *dev)
{
	unsigned int k, freed = 0;

	for (k = 0; k < dev->slot_count; ++k) {
		struct IvgpuSlotEntry *entry = &dev->entries[k];

		/* Pages are gone with the earlier kernel or binding. */
		if (READ_ONCE(entry->pinned)) {
			WRITE_ONCE(entry->pinned, 0);
			++freed;
		}
		if (READ_ONCE(entry->owner.peer) == dev->peer &&
		    give_back(entry, READ_ONCE(entry->state)))
			++freed;
	}
	if (freed)
		ivgpu_ring(dev, 0);
}

/* Reports to the host the slots whose pages are released by now. */
void ivgpu_look_at_pins(struct work_struct *work)
{
	struct ivgpu_device *dev = container_of(to_delayed_work(work), struct ivgpu_device, unpin);
	bool again = false, ring = false;
	unsigned int k;

	mutex_lock(&dev->mutex);
	for (k = 0; k < dev->slot_count; ++k) {
		struct ivgpu_slot *slot = &dev->slot[k];

		if (!slot->pinned)
			continue;
		if (ivgpu_in_use(dev, ivgpu_slot_start(dev, k), dev->slot_bytes)) {
			again = true;
			continue;
		}
		slot->pinned = false;
		/* Makes the last user's writes visible first. */
		smp_store_release(&dev->entries[k].pinned, 0);
		ring = true;
	}
	if (ring)
		ivgpu_ring(dev, 0);
	mutex_unlock(&dev->mutex);
	if (again)
		schedule_delayed_work(&dev->unpin, msecs_to_jiffies(UNPIN_PERIOD_MS));
}
