/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores of a whole warp.  Included by ptx_vec.c only, so that it is
 * built for each instruction set.  An access is one of three shapes: all lanes
 * at one distance from each other in host memory (contiguous, uniform, local
 * memory), or one pointer for each lane.
 */
#ifndef SOFTCUDA_PTX_VEC_MEM_H
#define SOFTCUDA_PTX_VEC_MEM_H

/* Lane l's memory is base + (l - first) * stride, or ptr[l] if base is NULL. */
struct shape {
	u8 *base;
	u64 stride;
	u32 first;
	u8 *ptr[PTX_LANES];
};

#define LOAD_AS(mt, rt) do { \
	rt *d = PTX_ROW(w, rt, row), tmp[PTX_LANES]; \
	rt *out = mask == PTX_FULL ? d : tmp; \
	mt v; \
	if (s->base && mask == PTX_FULL && s->stride == sizeof(mt)) { \
		const u8 *p = s->base + off; \
		if (sizeof(mt) == sizeof(rt)) { \
			memcpy(out, p, sizeof(rt) * PTX_LANES); \
			return; \
		} \
		LANES { \
			memcpy(&v, p + l * sizeof(mt), sizeof(mt)); \
			out[l] = (rt)v; \
		} \
	} else if (s->base && s->stride == 0) { \
		memcpy(&v, s->base + off, sizeof(mt)); \
		LANES out[l] = (rt)v; \
	} else if (s->base) { \
		const u8 *p = s->base + off; \
		for (u32 m = mask; m; m &= m - 1) { \
			u32 l = (u32)__builtin_ctz(m); \
			memcpy(&v, p + (l - s->first) * s->stride, \
				sizeof(mt)); \
			d[l] = (rt)v; \
		} \
		return; \
	} else { \
		for (u32 m = mask; m; m &= m - 1) { \
			u32 l = (u32)__builtin_ctz(m); \
			memcpy(&v, s->ptr[l] + off, sizeof(mt)); \
			d[l] = (rt)v; \
		} \
		return; \
	} \
	if (mask != PTX_FULL) \
		BLEND(rt, d, tmp, mask); \
} while (0)

/* Access type and register size as one number. */
#define MT(type, regsize) ((type) * 16 + (regsize))
#define MT_ALL(M) \
	M(u8, u8, u16) M(u8, u8, u32) M(u8, u8, u64) \
	M(s8, s8, s16) M(s8, s8, s32) M(s8, s8, s64) \
	M(u16, u16, u16) M(u16, u16, u32) M(u16, u16, u64) \
	M(s16, s16, u16) M(s16, s16, s32) M(s16, s16, s64) \
	M(u32, u32, u32) M(u32, u32, u64) \
	M(s32, s32, u32) M(s32, s32, s64) \
	M(u64, u64, u64)

static void load_row(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	const struct shape *s, u32 row, u32 off)
{
#define M(pt, mt, rt) case MT(PTX_##pt, sizeof(rt)): LOAD_AS(mt, rt); break;
	switch (MT(i->type, i->regsize)) {
	MT_ALL(M)
	}
#undef M
}

#define STORE_AS(mt, rt) do { \
	const rt *d = PTX_ROW(w, rt, row); \
	mt v; \
	if (s->base && mask == PTX_FULL && s->stride == sizeof(mt)) { \
		u8 *p = s->base + off; \
		if (sizeof(mt) == sizeof(rt)) { \
			memcpy(p, d, sizeof(rt) * PTX_LANES); \
			return; \
		} \
		LANES { \
			v = (mt)d[l]; \
			memcpy(p + l * sizeof(mt), &v, sizeof(mt)); \
		} \
	} else { \
		for (u32 m = mask; m; m &= m - 1) { \
			u32 l = (u32)__builtin_ctz(m); \
			u8 *p = s->base ? s->base + \
				(l - s->first) * s->stride : s->ptr[l]; \
			v = (mt)d[l]; \
			memcpy(p + off, &v, sizeof(mt)); \
		} \
	} \
} while (0)

static void store_row(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	const struct shape *s, u32 row, u32 off)
{
#define M(pt, mt, rt) case MT(PTX_##pt, sizeof(rt)): STORE_AS(mt, rt); break;
	switch (MT(i->type, i->regsize)) {
	MT_ALL(M)
	}
#undef M
}

/* The lanes of a mask without holes, else 0. */
static inline u32 run_length(u32 mask, u32 first)
{
	u32 n = mask >> first;

	return n & (n + 1) ? 0 : (u32)__builtin_popcount(n);
}

static void touched(struct ptx_warp *w, u64 address, u64 size, bool write)
{
	struct ptx_exec *x = w->x;

	if (write)
		x->count->bytes_written += size;
	else
		x->count->bytes_read += size;
	if (x->memory->touch)
		x->memory->touch(x->memory->self, address, size, write);
}

/* Any shape and space; tells of neighbouring lanes together. */
static bool gather(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	enum ptx_space space, const u64 *addr, struct shape *s, bool write)
{
	u32 bytes = (u32)i->size * i->vec;
	u64 start = 0, end = 0;

	s->base = NULL;
	for (u32 m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 a = addr[l];

		s->ptr[l] = ptx_lane_pointer(w, i, l, space, a, bytes, write);
		if (!s->ptr[l])
			break;
		if (!ptx_is_global(space, a))
			continue;
		if (end && (a == end || a == end - bytes)) {
			end = a + bytes;
			continue;
		}
		if (end)
			touched(w, start, end - start, write);
		start = a;
		end = a + bytes;
	}
	if (end)
		touched(w, start, end - start, write);
	return w->x->status == PTX_OK;
}

/* Finds the memory of all lanes in the mask; false: a fault was noted. */
static inline bool find_shape(struct ptx_warp *w, const struct ptx_insn *i,
	u32 mask, struct shape *s, bool write)
{
	struct ptx_exec *x = w->x;
	enum ptx_space space = i->space;
	u32 bytes = (u32)i->size * i->vec, first = (u32)__builtin_ctz(mask);
	u32 n = run_length(mask, first);
	u64 addr[PTX_LANES], a0, same = 0, line = 0, len, off;

	ptx_addresses(w, i, addr);
	a0 = addr[first];
	if (mask == PTX_FULL) {
		LANES {
			u64 diff = addr[l] - a0;

			same |= diff;
			line |= diff ^ (u64)l * bytes;
		}
	} else {
		for (u32 m = mask; m; m &= m - 1) {
			u32 l = (u32)__builtin_ctz(m);
			u64 diff = addr[l] - a0;

			same |= diff;
			line |= diff ^ (u64)(l - first) * bytes;
		}
	}
	s->first = first;
	if (space == PTX_GENERIC && a0 < PTX_SHARED_BASE && (!same || !line))
		space = PTX_GLOBAL;
	if (space == PTX_LOCAL && !same && a0 <= w->local_stride &&
	    bytes <= w->local_stride - a0 && !(a0 & (bytes - 1))) {
		s->base = w->local + (u64)first * w->local_stride + a0;
		s->stride = w->local_stride;
		return true;
	}
	if ((a0 & (bytes - 1)) || (same && (line || !n)))
		return gather(w, i, mask, i->space, addr, s, write);
	len = same ? (u64)n * bytes : bytes;
	s->stride = same ? bytes : 0;
	if (space == PTX_GLOBAL || space == PTX_CONST) {
		s->base = ptx_global(x, i->line, a0, len, write);
		if (s->base) {
			touched(w, a0, len, write);
			return true;
		}
	} else if (space == PTX_SHARED) {
		off = a0;
		if (off < x->shared_size && len <= x->shared_size - off) {
			s->base = x->shared + off;
			return true;
		}
	} else if (space == PTX_PARAM && !write) {
		if (a0 < x->params_size && len <= x->params_size - a0) {
			s->base = x->params + a0;
			return true;
		}
	}
	return gather(w, i, mask, i->space, addr, s, write);
}

/*
 * The common access (`op` is its bytes a lane: elements of the register's size,
 * plain 64-bit addresses) by a full warp, lane after lane in memory; otherwise
 * NULL.
 */
static inline u8 *in_line(struct ptx_warp *w, const struct ptx_insn *i,
	u32 mask, bool write)
{
	const u64 *a = PTX_ROW(w, u64, i->a);
	u64 a0 = a[0], off = 0, bytes = i->op;
	u8 *p;

	if (!bytes || mask != PTX_FULL)
		return NULL;
	if (bytes == 4)
		LANES off |= (a[l] - a0) ^ (u64)l * 4;
	else if (bytes == 8)
		LANES off |= (a[l] - a0) ^ (u64)l * 8;
	else
		LANES off |= (a[l] - a0) ^ (u64)l * 16;
	a0 += (u64)i->imm;
	if (off || (a0 & (bytes - 1)) || a0 >= PTX_SHARED_BASE)
		return NULL;
	p = ptx_global(w->x, i->line, a0, bytes * PTX_LANES, write);
	if (p)
		touched(w, a0, bytes * PTX_LANES, write);
	return p;
}

/* An element of a host address that need not be aligned for its type. */
struct pair32 {
	u32 v[2];
} __attribute__((packed));
struct quad32 {
	u32 v[4];
} __attribute__((packed));

static void load_line(struct ptx_warp *w, const struct ptx_insn *i, const u8 *p)
{
	u32 *d = PTX_ROW(w, u32, i->d), *b = PTX_ROW(w, u32, i->b);
	u32 *c = PTX_ROW(w, u32, i->c), *e = PTX_ROW(w, u32, i->e);

	if (i->vec == 1) {
		memcpy(d, p, i->size == 4 ? 4 * PTX_LANES : 8 * PTX_LANES);
	} else if (i->vec == 2) {
		const struct pair32 *m = (const struct pair32 *)p;

		LANES {
			d[l] = m[l].v[0];
			b[l] = m[l].v[1];
		}
	} else {
		const struct quad32 *m = (const struct quad32 *)p;

		LANES {
			d[l] = m[l].v[0];
			b[l] = m[l].v[1];
			c[l] = m[l].v[2];
			e[l] = m[l].v[3];
		}
	}
}

static void store_line(struct ptx_warp *w, const struct ptx_insn *i, u8 *p)
{
	const u32 *d = PTX_ROW(w, u32, i->d), *b = PTX_ROW(w, u32, i->b);
	const u32 *c = PTX_ROW(w, u32, i->c), *e = PTX_ROW(w, u32, i->e);

	if (i->vec == 1) {
		memcpy(p, d, i->size == 4 ? 4 * PTX_LANES : 8 * PTX_LANES);
	} else if (i->vec == 2) {
		struct pair32 *m = (struct pair32 *)p;

		LANES {
			m[l].v[0] = d[l];
			m[l].v[1] = b[l];
		}
	} else {
		struct quad32 *m = (struct quad32 *)p;

		LANES {
			m[l].v[0] = d[l];
			m[l].v[1] = b[l];
			m[l].v[2] = c[l];
			m[l].v[3] = e[l];
		}
	}
}

static void vec_load(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	struct shape s;
	u8 *p = in_line(w, i, mask, false);

	if (p) {
		load_line(w, i, p);
		return;
	}
	if (!find_shape(w, i, mask, &s, false))
		return;
	load_row(w, i, mask, &s, i->d, 0);
	if (i->vec > 1)
		load_row(w, i, mask, &s, i->b, i->size);
	if (i->vec > 2) {
		load_row(w, i, mask, &s, i->c, 2u * i->size);
		load_row(w, i, mask, &s, i->e, 3u * i->size);
	}
}

static void vec_store(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	struct shape s;
	u8 *p = in_line(w, i, mask, true);

	if (p) {
		store_line(w, i, p);
		return;
	}
	if (!find_shape(w, i, mask, &s, true))
		return;
	store_row(w, i, mask, &s, i->d, 0);
	if (i->vec > 1)
		store_row(w, i, mask, &s, i->b, i->size);
	if (i->vec > 2) {
		store_row(w, i, mask, &s, i->c, 2u * i->size);
		store_row(w, i, mask, &s, i->e, 3u * i->size);
	}
}

#endif
