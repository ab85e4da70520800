// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ivshmem device. The module binds it if its region is ours, and releases
 * it when it is unplugged, at a kexec, and around sleep.
 *
 * Code that touches the device's memory or registers for a program does so
 * inside `srcu` and checks `gone` first. Removal sets `gone`, waits for the
 * readers of `srcu`, and then frees everything else.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/random.h>

#include "ivgpu.h"

#define IVSHMEM_ID 8		/* offsets of BAR0's registers */
#define IVSHMEM_DOORBELL 12
#define IVGPU_BARS (BIT(0) | BIT(2))

/* Rings a host peer: 0 is the broker, 1 + k the worker of slot k. */
void ivgpu_ring(struct ivgpu_device *dev, unsigned int peer)
{
	/* The 64-bit word with this bit: x86-64 is little-endian. */
	if (dev->no_doorbell)
		set_bit(peer, (unsigned long *)dev->header->doorbell_bits);
	else
		iowrite32(peer << 16, dev->registers + IVSHMEM_DOORBELL);
}

static void release_device(struct device *device)
{
	kfree(container_of(device, struct ivgpu_device, dev));
}

static void last_user(struct kref *users)
{
	struct ivgpu_device *dev = container_of(users, struct ivgpu_device, users);

	if (dev->inode)
		iput(dev->inode);
	cleanup_srcu_struct(&dev->srcu);
	put_device(&dev->dev);
}

void ivgpu_put(struct ivgpu_device *dev)
{
	kref_put(&dev->users, last_user);
}

static struct ivgpu_device *new_device(struct pci_dev *pdev)
{
	struct ivgpu_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	unsigned int k;

	if (!dev)
		return NULL;
	if (init_srcu_struct(&dev->srcu)) {
		kfree(dev);
		return NULL;
	}
	kref_init(&dev->users);
	mutex_init(&dev->mutex);
	init_rwsem(&dev->fault_lock);
	INIT_LIST_HEAD(&dev->openers);
	INIT_DELAYED_WORK(&dev->unpin, ivgpu_look_at_pins);
	for (k = 0; k < IVGPU_MAX_SLOTS; ++k) {
		spin_lock_init(&dev->slot[k].lock);
		INIT_LIST_HEAD(&dev->slot[k].sleepers);
	}
	device_initialize(&dev->dev);
	dev->dev.class = &ivgpu_class;
	dev->dev.parent = &pdev->dev;
	dev->dev.release = release_device;
	dev->pdev = pdev;
	dev->memory = pci_resource_start(pdev, 2);
	/* Must not be 0, which marks an unknown owner. */
	dev->boot = get_random_u64() | 1;
	return dev;
}

static int take_resources(struct ivgpu_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int error;

	/* Exclusive, so that sysfs does not map the region past the module. */
	error = pci_request_selected_regions_exclusive(pdev, IVGPU_BARS, "ivgpu");
	if (error) {
		dev_err(&pdev->dev, "its memory is somebody else's\n");
		return error;
	}
	dev->registers = pci_iomap(pdev, 0, 0);
	if (!dev->registers) {
		error = -ENOMEM;
		goto no_registers;
	}
	dev->peer = ioread32(dev->registers + IVSHMEM_ID);
	dev->inode = ivgpu_new_inode();
	if (IS_ERR(dev->inode)) {
		error = PTR_ERR(dev->inode);
		dev->inode = NULL;
		goto no_inode;
	}
	i_size_write(dev->inode, dev->region_bytes);
	error = ivgpu_map_region(dev);
	if (error)
		goto no_inode;
	return 0;

no_inode:
	pci_iounmap(pdev, dev->registers);
no_registers:
	pci_release_selected_regions(pdev, IVGPU_BARS);
	return error;
}

static void give_resources(struct ivgpu_device *dev)
{
	ivgpu_unmap_region(dev);
	pci_iounmap(dev->pdev, dev->registers);
	pci_release_selected_regions(dev->pdev, IVGPU_BARS);
}

/* Revokes the region from all programs, for good. */
static void shut(struct ivgpu_device *dev)
{
	struct ivgpu_opener *opener;

	mutex_lock(&dev->mutex);
	WRITE_ONCE(dev->gone, true);
	ivgpu_end_all(dev);
	list_for_each_entry(opener, &dev->openers, node)
		wake_up_all(&opener->wait);
	mutex_unlock(&dev->mutex);
	synchronize_srcu(&dev->srcu);
	ivgpu_revoke(dev, 0, IVGPU_HEADER_AREA_BYTES);
	cancel_delayed_work_sync(&dev->unpin);
	ivgpu_free_vectors(dev);
}

/*
 * memunmap_pages() does not wait for users of pages such as an io_uring
 * buffer, and the pages' struct page must outlive that use.
 */
static void wait_for_pins(struct ivgpu_device *dev)
{
	unsigned int sleeps = 0;

	while (ivgpu_in_use(dev, 0, dev->region_bytes)) {
		if (sleeps++ % 1000 == 100)
			dev_info(&dev->pdev->dev, "waiting for I/O to pages of the region\n");
		msleep(20);
	}
}

/* Preconditions: no new open is possible; open files may exist. */
static void let_go(struct ivgpu_device *dev)
{
	shut(dev);
	wait_for_pins(dev);
	/* Lets the host reuse unpinned slots. This work does not run again. */
	ivgpu_look_at_pins(&dev->unpin.work);
	cancel_delayed_work_sync(&dev->unpin);
	give_resources(dev);
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct ivgpu_device *dev;
	int error;

	error = pci_enable_device_mem(pdev);
	if (error)
		return error;
	dev = new_device(pdev);
	if (!dev) {
		error = -ENOMEM;
		goto disable;
	}
	error = ivgpu_read_header(dev);
	if (error)
		goto put;
	error = take_resources(dev);
	if (error)
		goto put;
	ivgpu_take_vectors(dev);
	ivgpu_free_orphans(dev);
	pci_set_drvdata(pdev, dev);
	error = ivgpu_add_node(dev);
	if (error) {
		/* A program may have opened the node before the error. */
		let_go(dev);
		goto put;
	}
	dev_info(&pdev->dev, "%s: %u slots of %llu MiB, %u of %u interrupts%s\n",
		 dev_name(&dev->dev), dev->slot_count, dev->slot_bytes >> 20,
		 dev->vectors, min(dev->device_vectors, dev->slot_count),
		 dev->vectors ? "" : ": nobody wakes its programs");
	return 0;

put:
	ivgpu_put(dev);
disable:
	pci_disable_device(pdev);
	return error;
}

static void remove(struct pci_dev *pdev)
{
	struct ivgpu_device *dev = pci_get_drvdata(pdev);

	ivgpu_remove_node(dev);
	let_go(dev);
	pci_disable_device(pdev);
	ivgpu_put(dev);
}

/* Reboot, kexec: the next kernel finds no owned slot, gets no interrupt. */
static void shutdown(struct pci_dev *pdev)
{
	shut(pci_get_drvdata(pdev));
}

/* Interrupts may be lost during sleep: check every sleeper's word. */
static int resume(struct device *device)
{
	struct ivgpu_device *dev = dev_get_drvdata(device);
	unsigned int k;

	for (k = 0; k < dev->slot_count; ++k)
		ivgpu_slot_signalled(&dev->slot[k]);
	return 0;
}

/*
 * After hibernation the region belongs to another QEMU, so no earlier session
 * is alive. The slots of the new region may be elsewhere; binding the device
 * checks this.
 */
static int restore(struct device *device)
{
	struct ivgpu_device *dev = dev_get_drvdata(device);

	mutex_lock(&dev->mutex);
	ivgpu_end_all(dev);
	dev->peer = ioread32(dev->registers + IVSHMEM_ID);
	mutex_unlock(&dev->mutex);
	if (!ivgpu_same_region(dev)) {
		dev_err(device, "another region since hibernation: unbind the device and bind it anew\n");
		shut(dev);
	}
	return 0;
}

static const struct dev_pm_ops power = {
	.resume = pm_sleep_ptr(resume),
	.thaw = pm_sleep_ptr(resume),
	.restore = pm_sleep_ptr(restore),
};

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(0x1af4, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

struct pci_driver ivgpu_driver = {
	.name = "ivgpu",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.driver.pm = pm_ptr(&power),
};
