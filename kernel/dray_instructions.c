// SPDX-License-Identifier: GPL-2.0
/*
 * MOVDIR64B, ENQCMD and ENQCMDS for a processor without them (QEMU's TCG).
 *
 * An invalid opcode that is one of the three is carried out: eight stores of eight bytes. To have the device
 * know ENQCMD from MOVDIR64B, a read of two bytes at the portal comes first, and a read of four bytes after
 * it gives the answer: 0 accepted, 1 retry. Only the virtual device gives such reads a meaning.
 *
 * CPUID in the kernel says that the instructions are there; load this before idxd.
 */
#define pr_fmt(fmt) "dray_instructions: " fmt

#include <linux/iommu.h>
#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/cpufeature.h>
#include <asm/processor-flags.h>
#include <asm/trapnr.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "known are the kernels 6.12 to 7.3"
#endif

enum operation { MOVDIR64B, ENQCMD, ENQCMDS };

struct decoded {
	enum operation operation;
	unsigned long destination;
	unsigned long source;
	unsigned int length;
};

static atomic64_t carried_out[3];
/* The device puts one write together at a time. */
static DEFINE_RAW_SPINLOCK(portal_lock);

/* A general register by its number in ModRM, SIB and REX. */
static unsigned long general(struct pt_regs *regs, unsigned int number)
{
	unsigned long *const registers[16] = {
		&regs->ax, &regs->cx, &regs->dx, &regs->bx, &regs->sp, &regs->bp, &regs->si, &regs->di,
		&regs->r8, &regs->r9, &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,
	};

	return *registers[number & 15];
}

/* Decodes 64-bit code: [prefixes] [REX] 0F 38 F8 ModRM [SIB] [displacement]. */
static bool decode(struct pt_regs *regs, const u8 *code, unsigned int size, struct decoded *d)
{
	unsigned int at = 0, rex = 0, mod, reg, rm, displacement = 0;
	unsigned long segment = 0, address;
	u8 mandatory = 0;
	s32 offset = 0;

	for (; at < size; at++) {
		u8 byte = code[at];

		if (byte == 0x66 || byte == 0xf2 || byte == 0xf3)
			/* F2 and F3 count before 66. */
			mandatory = byte == 0x66 && mandatory ? mandatory : byte;
		else if (byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26)
			continue;
		else if (byte == 0x64)
			segment = user_mode(regs) ? current->thread.fsbase : 0;
		else
			break;
	}
	if (at < size && (code[at] & 0xf0) == 0x40)
		rex = code[at++];
	if (at + 4 > size || code[at] != 0x0f || code[at + 1] != 0x38 || code[at + 2] != 0xf8)
		return false;
	switch (mandatory) {
	case 0x66: d->operation = MOVDIR64B; break;
	case 0xf2: d->operation = ENQCMD; break;
	case 0xf3: d->operation = ENQCMDS; break;
	default: return false;
	}
	at += 3;
	mod = code[at] >> 6;
	reg = (code[at] >> 3 & 7) | (rex & 4) << 1;
	rm = code[at] & 7;
	at++;
	if (mod == 3)
		return false;
	if (rm == 4) {
		unsigned int scale, index, base;

		if (at >= size)
			return false;
		scale = code[at] >> 6;
		index = (code[at] >> 3 & 7) | (rex & 2) << 2;
		base = code[at] & 7;
		at++;
		if (base == 5 && mod == 0) {
			address = 0;
			displacement = 4;
		} else {
			address = general(regs, base | (rex & 1) << 3);
		}
		if (index != 4)
			address += general(regs, index) << scale;
	} else if (rm == 5 && mod == 0) {
		/* Relative to the next instruction: nothing follows the displacement. */
		address = regs->ip + at + 4;
		displacement = 4;
	} else {
		address = general(regs, rm | (rex & 1) << 3);
	}
	if (mod == 1)
		displacement = 1;
	else if (mod == 2)
		displacement = 4;
	if (at + displacement > size)
		return false;
	if (displacement == 1)
		offset = (s8)code[at];
	else if (displacement == 4)
		memcpy(&offset, code + at, 4);
	d->source = segment + address + offset;
	d->destination = general(regs, reg);
	d->length = at + displacement;
	return true;
}

static bool fetch(struct pt_regs *regs, void *into, unsigned long from, size_t size)
{
	if (user_mode(regs))
		return !copy_from_user_nofault(into, (const void __user *)from, size);
	return !copy_from_kernel_nofault(into, (const void *)from, size);
}

/* Eight stores; for a deferrable write the reads around them. True if all could be done. */
static bool store_user(u64 __user *portal, const u64 *words, bool deferrable, u32 *answer)
{
	unsigned int n;
	u16 arm;
	bool done = false;

	pagefault_disable();
	if (deferrable && __get_user(arm, (u16 __user *)portal))
		goto out;
	for (n = 0; n < 8; n++)
		if (__put_user(words[n], portal + n))
			goto out;
	if (deferrable && __get_user(*answer, (u32 __user *)portal))
		goto out;
	done = true;
out:
	pagefault_enable();
	return done;
}

static void store_kernel(void __iomem *portal, const u64 *words, bool deferrable, u32 *answer)
{
	unsigned int n;

	if (deferrable)
		readw(portal);
	for (n = 0; n < 8; n++)
		writeq(words[n], portal + 8 * n);
	if (deferrable)
		*answer = readl(portal);
}

static int invalid_opcode(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *args = data;
	struct pt_regs *regs = args->regs;
	struct decoded d;
	unsigned long flags;
	u64 words[8];
	u32 answer = 0;
	bool deferrable, done = true;
	u8 code[15] = {};
	unsigned int size;

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_UD)
		return NOTIFY_DONE;
	if (user_mode(regs) && regs->cs != __USER_CS)
		return NOTIFY_DONE;
	/* The page after the instruction need not be there. */
	for (size = sizeof(code); size >= 5; size--)
		if (fetch(regs, code, regs->ip, size))
			break;
	if (size < 5 || !decode(regs, code, size, &d))
		return NOTIFY_DONE;
	if (d.destination & 63 || !fetch(regs, words, d.source, sizeof(words)))
		return NOTIFY_DONE;
	deferrable = d.operation != MOVDIR64B;
	if (d.operation == ENQCMD) {
		u32 pasid;

		/* The PASID is that of the process (IA32_PASID), never what its memory says. */
		if (!user_mode(regs) || !current->mm)
			return NOTIFY_DONE;
		pasid = mm_get_enqcmd_pasid(current->mm);
		if (pasid == IOMMU_PASID_INVALID)
			return NOTIFY_DONE;
		words[0] = (words[0] & ~0xffffffffULL) | (pasid & 0xfffff);
	} else if (d.operation == ENQCMDS && user_mode(regs)) {
		return NOTIFY_DONE;
	}
	if (user_mode(regs) && !access_ok((void __user *)d.destination, 64))
		return NOTIFY_DONE;
	raw_spin_lock_irqsave(&portal_lock, flags);
	if (user_mode(regs))
		done = store_user((u64 __user *)d.destination, words, deferrable, &answer);
	else
		store_kernel((void __iomem *)d.destination, words, deferrable, &answer);
	raw_spin_unlock_irqrestore(&portal_lock, flags);
	if (!done)
		return NOTIFY_DONE;
	if (deferrable) {
		regs->flags &= ~(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF |
				 X86_EFLAGS_SF | X86_EFLAGS_OF);
		if (answer)
			regs->flags |= X86_EFLAGS_ZF;
	}
	regs->ip += d.length;
	atomic64_inc(&carried_out[d.operation]);
	return NOTIFY_STOP;
}

static struct notifier_block block = {
	.notifier_call = invalid_opcode,
	.priority = INT_MAX,
};

static int __init start(void)
{
	if (boot_cpu_has(X86_FEATURE_MOVDIR64B)) {
		pr_err("this processor has MOVDIR64B: there is nothing to emulate\n");
		return -ENODEV;
	}
	if (register_die_notifier(&block))
		return -ENOMEM;
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_MOVDIR64B);
	set_cpu_cap(&boot_cpu_data, X86_FEATURE_ENQCMD);
	pr_info("MOVDIR64B, ENQCMD and ENQCMDS are emulated\n");
	return 0;
}

static int show(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "movdir64b %lld enqcmd %lld enqcmds %lld\n",
			  atomic64_read(&carried_out[MOVDIR64B]), atomic64_read(&carried_out[ENQCMD]),
			  atomic64_read(&carried_out[ENQCMDS]));
}

static const struct kernel_param_ops counts_ops = { .get = show };
module_param_cb(carried_out, &counts_ops, NULL, 0444);
MODULE_PARM_DESC(carried_out, "instructions that were carried out");

/* No exit: drivers that were loaded since then would meet invalid opcodes. */
module_init(start);
MODULE_DESCRIPTION("MOVDIR64B, ENQCMD and ENQCMDS for a virtual processor without them");
MODULE_LICENSE("GPL");
