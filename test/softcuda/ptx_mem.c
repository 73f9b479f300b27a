/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: where a lane's address lies in host memory, and what to say
 * when it lies nowhere.  Called by the vector loads and stores, atomics and the
 * built-in functions; also cp.async, which is two accesses.  No locks.
 */
#include <stdio.h>

#include "test/softcuda/ptx_vm.h"

static bool holds(const struct ptx_cached *c, u64 address, u64 size, bool write)
{
	u64 off = address - c->address;

	return off < c->size && size <= c->size - off && c->write >= write;
}

/* The run is first looked for among those known, then asked for. */
u8 *ptx_global_slow(struct ptx_exec *x, u32 slot, u64 address, u64 size,
	bool write)
{
	struct ptx_cached *c = NULL;
	struct ptx_run run;
	u32 k;

	for (k = 0; k < PTX_KNOWN_RUNS && !c; k++)
		if (holds(&x->known[k], address, size, write))
			c = &x->known[k];
	if (!c) {
		if (!x->memory->translate(x->memory->self, address, write,
				&run))
			return NULL;
		c = &x->known[x->next_known++ % PTX_KNOWN_RUNS];
		c->address = run.address;
		c->size = run.size;
		c->host = run.host;
		c->write = write;
		if (!holds(c, address, size, write))
			return NULL;
	}
	x->cache[slot % PTX_CACHE_SLOTS] = *c;
	return c->host + (address - c->address);
}

void ptx_fault_at(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	enum ptx_status status, u64 address, const char *fmt, ...)
{
	struct ptx_exec *x = w->x;
	struct ptx_fault *f = x->fault;
	va_list ap;
	u32 k;

	if (x->status != PTX_OK)
		return;
	x->status = status;
	if (!f)
		return;
	f->line = i->line;
	f->address = address;
	for (k = 0; k < 3; k++) {
		f->block[k] = x->ctaid[k];
		f->thread[k] = w->tid[k][lane];
	}
	va_start(ap, fmt);
	vsnprintf(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
}

void ptx_addresses(struct ptx_warp *w, const struct ptx_insn *i, u64 *out)
{
	u64 add = (u64)i->imm;
	u32 l;

	if (i->flags & PTX_F_FRAME)
		add += w->local_base;
	if (i->flags & PTX_F_ADDR32) {
		const u32 *a = PTX_ROW(w, u32, i->a);

		/* wraps in 32 bits, as a window offset does */
		for (l = 0; l < PTX_LANES; l++)
			out[l] = (u32)(a[l] + (u32)add);
	} else {
		const u64 *a = PTX_ROW(w, u64, i->a);

		for (l = 0; l < PTX_LANES; l++)
			out[l] = a[l] + add;
	}
}

static enum ptx_space resolve(u64 *address)
{
	u64 a = *address;

	if (a - PTX_SHARED_BASE < PTX_WINDOW) {
		*address = a - PTX_SHARED_BASE;
		return PTX_SHARED;
	}
	if (a - PTX_LOCAL_BASE < PTX_WINDOW) {
		*address = a - PTX_LOCAL_BASE;
		return PTX_LOCAL;
	}
	if (a - PTX_PARAM_BASE < PTX_WINDOW) {
		*address = a - PTX_PARAM_BASE;
		return PTX_PARAM;
	}
	return PTX_GLOBAL;
}

bool ptx_is_global(enum ptx_space space, u64 address)
{
	if (space == PTX_GENERIC)
		space = resolve(&address);
	return space == PTX_GLOBAL || space == PTX_CONST;
}

static const char *const space_name[] = {
	[PTX_GENERIC] = "generic", [PTX_GLOBAL] = "global",
	[PTX_SHARED] = "shared", [PTX_LOCAL] = "local", [PTX_CONST] = "const",
	[PTX_PARAM] = "param",
};

u8 *ptx_lane_pointer(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	enum ptx_space space, u64 address, u32 size, bool write)
{
	struct ptx_exec *x = w->x;
	u64 a = address, limit = 0;
	u8 *p = NULL;

	if (address & (size - 1)) {
		ptx_fault_at(w, i, lane, PTX_MISALIGNED, address,
			"misaligned %s of %u bytes at 0x%llx",
			write ? "write" : "read", size,
			(unsigned long long)address);
		return NULL;
	}
	if (space == PTX_GENERIC)
		space = resolve(&a);
	switch (space) {
	case PTX_SHARED:
		p = x->shared;
		limit = x->shared_size;
		break;
	case PTX_LOCAL:
		p = w->local + (u64)lane * w->local_stride;
		limit = w->local_stride;
		break;
	case PTX_PARAM:
		p = x->params;
		limit = write ? 0 : x->params_size;
		break;
	default:
		p = ptx_global(x, i->line, a, size, write);
		if (p)
			return p;
	}
	if (a < limit && size <= limit - a)
		return p + a;
	ptx_fault_at(w, i, lane, PTX_ILLEGAL_ADDRESS, address,
		"illegal %s %s of %u bytes at 0x%llx", space_name[space],
		write ? "write" : "read", size, (unsigned long long)address);
	return NULL;
}

bool ptx_read_text(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	u64 address, char *out, size_t size)
{
	size_t n;
	u8 *p;

	for (n = 0; n + 1 < size; n++) {
		p = ptx_lane_pointer(w, i, lane, PTX_GENERIC, address + n, 1,
			false);
		if (!p)
			return false;
		out[n] = (char)*p;
		if (!*p)
			return true;
	}
	out[n] = '\0';
	return true;
}

/* ---- cp.async ------------------------------------------------------------ */

/* d = the address */
void ptx_lea_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u64 addr[PTX_LANES];
	u32 m;

	ptx_addresses(w, i, addr);
	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);

		PTX_ROW(w, u64, i->d)[l] = addr[l];
	}
}

/* Bytes of a lane that come from the source; zeros follow. */
static u32 copy_size(struct ptx_warp *w, const struct ptx_insn *i, u32 lane)
{
	u32 n = i->size, ignore;

	if (i->e) {
		ignore = *PTX_ROW(w, u32, i->e);
		if (i->flags & PTX_F_NOT_C)
			ignore = ~ignore;
		return ignore >> lane & 1 ? 0 : n;
	}
	if (i->c && PTX_ROW(w, u32, i->c)[lane] < n)
		n = PTX_ROW(w, u32, i->c)[lane];
	return n;
}

static void tell_read(struct ptx_exec *x, u64 address, u64 size)
{
	x->count->bytes_read += size;
	if (size && x->memory->touch)
		x->memory->touch(x->memory->self, address, size, false);
}

/* shared [b] = global [a], size bytes; see copy_size */
void ptx_copy_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u64 addr[PTX_LANES], start = 0, end = 0;
	u32 m;

	ptx_addresses(w, i, addr);
	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m), n = copy_size(w, i, l);
		u8 *to = ptx_lane_pointer(w, i, l, PTX_SHARED,
			PTX_ROW(w, u64, i->b)[l], i->size, true), *from;

		if (!to)
			break;
		memset(to + n, 0, i->size - n);
		if (!n)
			continue;
		/* alignment is that of the whole, access that of the part */
		if (addr[l] & (i->size - 1u)) {
			ptx_lane_pointer(w, i, l, i->space, addr[l], i->size,
				false);
			break;
		}
		from = ptx_global(w->x, i->line, addr[l], n, false);
		if (!from) {
			ptx_lane_pointer(w, i, l, i->space, addr[l], i->size,
				false);
			break;
		}
		memcpy(to, from, n);
		if (addr[l] != end) {
			tell_read(w->x, start, end - start);
			start = addr[l];
		}
		end = addr[l] + n;
	}
	tell_read(w->x, start, end - start);
}
