// SPDX-License-Identifier: GPL-2.0-only
/*
 * The region, which is BAR2: its header, read once and checked, and the
 * kernel's own mapping of the region.
 *
 * The firmware often marks BAR2 as uncached, and a mapping by frame number is
 * then uncached, too. The module therefore creates struct pages, in compounds
 * of 2 MiB: mappings by page are write-back, and the kernel can do I/O to
 * these pages. If the kernel refuses the pages, the module maps by frame
 * number.
 */
#include <linux/io.h>
#include <linux/memremap.h>
#include <linux/vmalloc.h>

#include "ivgpu.h"

#define PAGES_OF(bytes) ((bytes) >> PAGE_SHIFT)
#define IVGPU_ORDER 9		/* the order of a compound: 2 MiB */

/* Checks the numbers one by one first, so that no product overflows. */
static bool slots_fit(const struct IvgpuRegionHeader *header, u64 bytes)
{
	if (!header->slot_count || header->slot_count > IVGPU_MAX_SLOTS)
		return false;
	if (header->first_slot < IVGPU_FIRST_SLOT_OFFSET || header->first_slot > bytes)
		return false;
	if (header->slot_bytes <= IVGPU_ARENA_OFFSET || header->slot_bytes > bytes)
		return false;
	if ((header->first_slot | header->slot_bytes) % IVGPU_HUGE_PAGE)
		return false;
	return header->slot_bytes * header->slot_count <= bytes - header->first_slot;
}

/*
 * Other projects have ivshmem devices, too. The module therefore reads the
 * header before it claims anything, and leaves foreign devices alone.
 */
int ivgpu_read_header(struct ivgpu_device *dev)
{
	struct device *device = &dev->pdev->dev;
	u64 bytes = pci_resource_len(dev->pdev, 2), magic;
	struct IvgpuRegionHeader header;
	void __iomem *at;

	if (bytes < IVGPU_FIRST_SLOT_OFFSET) {
		dev_info(device, "its memory, %llu bytes, is too small for a region of ivgpud's\n",
			 bytes);
		return -ENODEV;
	}
	if ((dev->memory | bytes) % IVGPU_HUGE_PAGE) {
		dev_info(device, "its memory, %llu bytes at %pa, does not begin and end at a multiple of 2 MiB\n",
			 bytes, &dev->memory);
		return -ENODEV;
	}
	at = ioremap(dev->memory, sizeof(header));
	if (!at)
		return -ENOMEM;
	magic = readq(at);	/* the broker stores the magic last */
	rmb();
	memcpy_fromio(&header, at, sizeof(header));
	iounmap(at);

	if (magic != IVGPU_REGION_MAGIC) {
		dev_info(device, "its memory is no region of ivgpud's: magic %llx\n", magic);
		return -ENODEV;
	}
	if (header.version != IVGPU_LAYOUT_VERSION) {
		dev_err(device, "the region has layout %u, this module knows layout %u\n",
			header.version, IVGPU_LAYOUT_VERSION);
		return -ENODEV;
	}
	if (header.region_bytes != bytes || !slots_fit(&header, bytes)) {
		dev_err(device, "%u slots of %llu bytes do not fit a region of %llu\n",
			header.slot_count, header.slot_bytes, bytes);
		return -ENODEV;
	}
	dev->region_bytes = bytes;
	dev->first_slot = header.first_slot;
	dev->slot_bytes = header.slot_bytes;
	dev->slot_count = header.slot_count;
	dev->no_doorbell = header.no_doorbell;
	return 0;
}

/* Returns whether the region still has the bound region's layout. */
bool ivgpu_same_region(struct ivgpu_device *dev)
{
	const struct IvgpuRegionHeader *now = dev->header;

	return READ_ONCE(now->magic) == IVGPU_REGION_MAGIC &&
	       READ_ONCE(now->version) == IVGPU_LAYOUT_VERSION &&
	       READ_ONCE(now->region_bytes) == dev->region_bytes &&
	       READ_ONCE(now->first_slot) == dev->first_slot &&
	       READ_ONCE(now->slot_bytes) == dev->slot_bytes &&
	       READ_ONCE(now->slot_count) == dev->slot_count &&
	       !READ_ONCE(now->no_doorbell) == !dev->no_doorbell;
}

/*
 * Maps a range of the region for the kernel, with the memory type of the
 * programs' mappings.
 */
void *ivgpu_map_memory(struct ivgpu_device *dev, u64 offset, size_t bytes)
{
	unsigned int count = PAGES_OF(bytes), k;
	struct page **pages;
	void *at;

	if (!dev->pages)
		return memremap(dev->memory + offset, bytes, MEMREMAP_WB);
	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (k = 0; k < count; ++k)
		pages[k] = pfn_to_page(PHYS_PFN(dev->memory + offset) + k);
	at = vmap(pages, count, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return at;
}

void ivgpu_unmap_memory(struct ivgpu_device *dev, void *at)
{
	if (dev->pages)
		vunmap(at);
	else
		memunmap(at);
}

static void make_pages(struct ivgpu_device *dev)
{
	void *at;

	if (ivgpu_no_pages) {
		dev_info(&dev->pdev->dev, "no pages for the region, as asked: it may be slow\n");
		return;
	}
	dev->pagemap.type = MEMORY_DEVICE_GENERIC;
	dev->pagemap.range.start = dev->memory;
	dev->pagemap.range.end = dev->memory + dev->region_bytes - 1;
	dev->pagemap.nr_range = 1;
	dev->pagemap.vmemmap_shift = IVGPU_ORDER;
	at = memremap_pages(&dev->pagemap, dev_to_node(&dev->pdev->dev));
	dev->pages = !IS_ERR(at);
	if (!dev->pages)
		dev_info(&dev->pdev->dev,
			 "the kernel makes no pages for the region (%ld): it may be slow, and no I/O goes to it\n",
			 PTR_ERR(at));
}

int ivgpu_map_region(struct ivgpu_device *dev)
{
	make_pages(dev);
	dev->header = ivgpu_map_memory(dev, 0, IVGPU_HEADER_BYTES);
	if (!dev->header) {
		if (dev->pages)
			memunmap_pages(&dev->pagemap);
		return -ENOMEM;
	}
	dev->entries = (void *)dev->header + IVGPU_DIRECTORY_OFFSET;
	return 0;
}

void ivgpu_unmap_region(struct ivgpu_device *dev)
{
	ivgpu_unmap_memory(dev, dev->header);
	if (dev->pages)
		memunmap_pages(&dev->pagemap);
}

/*
 * Returns whether a user other than the module holds pages of a range, once no
 * program maps the range. A compound counts all references at its head.
 */
bool ivgpu_in_use(struct ivgpu_device *dev, u64 offset, u64 bytes)
{
	u64 end = offset + bytes;

	if (!dev->pages)
		return false;
	for (; offset < end; offset += IVGPU_HUGE_PAGE)
		if (page_count(pfn_to_page(PHYS_PFN(dev->memory + offset))) != 1)
			return true;
	return false;
}
