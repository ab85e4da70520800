// SPDX-License-Identifier: GPL-2.0-only
/*
 * ivgpu.ko: gives each process that opens /dev/ivgpuN one slot of a VM's
 * ivshmem region, and no other part of the region. This file loads and unloads
 * the module, and makes the nodes in /dev.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "ivgpu.h"

#define IVGPU_MINORS 64		/* ivshmem devices of one VM: more than it has PCI slots */
#define IVGPU_FS_MAGIC 0x76677069

bool ivgpu_no_pages;
module_param_named(no_pages, ivgpu_no_pages, bool, 0444);
MODULE_PARM_DESC(no_pages, "Map without struct pages, as on kernels that refuse them");

static dev_t first_node;
static DEFINE_IDA(minors);
static struct vfsmount *pseudo_mount;

struct class ivgpu_class = {
	.name = "ivgpu",
};

/*
 * Mappings belong to an inode of the device, not of the node in /dev, because
 * a device may have several nodes. Entries of 2 MiB need an inode with a size.
 * The file system has no owner: with an owner, its mount would keep the module
 * loaded.
 */
static int init_pseudo_context(struct fs_context *fc)
{
	return init_pseudo(fc, IVGPU_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type pseudo_fs = {
	.name = "ivgpu",
	.init_fs_context = init_pseudo_context,
	.kill_sb = kill_anon_super,
};

struct inode *ivgpu_new_inode(void)
{
	return alloc_anon_inode(pseudo_mount->mnt_sb);
}

int ivgpu_add_node(struct ivgpu_device *dev)
{
	int minor, error;

	minor = ida_alloc_max(&minors, IVGPU_MINORS - 1, GFP_KERNEL);
	if (minor < 0)
		return minor;
	dev->dev.devt = first_node + minor;
	error = dev_set_name(&dev->dev, "ivgpu%d", minor);
	if (!error) {
		cdev_init(&dev->cdev, &ivgpu_file_operations);
		dev->cdev.owner = THIS_MODULE;
		error = cdev_device_add(&dev->cdev, &dev->dev);
	}
	if (error)
		ida_free(&minors, minor);
	return error;
}

void ivgpu_remove_node(struct ivgpu_device *dev)
{
	cdev_device_del(&dev->cdev, &dev->dev);
	ida_free(&minors, MINOR(dev->dev.devt) - MINOR(first_node));
}

static int __init ivgpu_init(void)
{
	int error;

	pseudo_mount = kern_mount(&pseudo_fs);
	if (IS_ERR(pseudo_mount))
		return PTR_ERR(pseudo_mount);
	error = alloc_chrdev_region(&first_node, 0, IVGPU_MINORS, "ivgpu");
	if (error)
		goto no_nodes;
	error = class_register(&ivgpu_class);
	if (error)
		goto no_class;
	error = pci_register_driver(&ivgpu_driver);
	if (error)
		goto no_driver;
	return 0;

no_driver:
	class_unregister(&ivgpu_class);
no_class:
	unregister_chrdev_region(first_node, IVGPU_MINORS);
no_nodes:
	kern_unmount(pseudo_mount);
	return error;
}

static void __exit ivgpu_exit(void)
{
	pci_unregister_driver(&ivgpu_driver);
	class_unregister(&ivgpu_class);
	unregister_chrdev_region(first_node, IVGPU_MINORS);
	kern_unmount(pseudo_mount);
	ida_destroy(&minors);
}

module_init(ivgpu_init);
module_exit(ivgpu_exit);
MODULE_DESCRIPTION("Slots of an ivgpu region for the processes of a VM");
MODULE_AUTHOR("The ivgpu authors");
MODULE_VERSION(IVGPU_RELEASE);
MODULE_LICENSE("GPL");
