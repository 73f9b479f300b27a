/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two functions that device code may call without defining them: vprintf
 * and __assertfail.  Called by the interpreter's loop; no locks.
 */
#include <stdio.h>

#include "test/softcuda/ptx_vm.h"

#define TEXT_MAX 4096

struct printer {
	struct ptx_warp *w;
	const struct ptx_insn *i;
	u32 lane;
	u64 args;		/* next argument, generic address */
	u32 nr_args;		/* taken so far: what vprintf returns */
	char out[TEXT_MAX];
	size_t len;
};

static u64 param(struct ptx_warp *w, const struct ptx_callsite *s, u32 k,
	u32 lane)
{
	u64 v = 0;

	memcpy(&v, w->local + (u64)lane * w->local_stride + w->local_base +
		s->in[k].offset, s->in[k].size > 8 ? 8 : s->in[k].size);
	return v;
}

static bool next_arg(struct printer *p, u32 size, u64 *v)
{
	u8 *m;

	p->args = (p->args + size - 1) & ~(u64)(size - 1);
	m = ptx_lane_pointer(p->w, p->i, p->lane, PTX_GENERIC, p->args, size,
		false);
	if (!m)
		return false;
	*v = 0;
	memcpy(v, m, size);
	p->args += size;
	p->nr_args++;
	return true;
}

__attribute__((format(printf, 2, 3)))
static void put(struct printer *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(p->out + p->len, sizeof(p->out) - p->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		p->len += (size_t)n;
	if (p->len >= sizeof(p->out))
		p->len = sizeof(p->out) - 1;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* `spec` was taken apart by convert(): one directive, its length removed. */
static void put_spec(struct printer *p, const char *spec, char conv, bool is64,
	u64 v)
{
	char text[1024];
	double d;

	switch (conv) {
	case 'd': case 'i':
		put(p, spec, is64 ? (long long)v : (long long)(s32)v);
		break;
	case 'u': case 'x': case 'X': case 'o':
		put(p, spec, is64 ? (unsigned long long)v :
			(unsigned long long)(u32)v);
		break;
	case 'c':
		put(p, spec, (int)v);
		break;
	case 'p':
		put(p, spec, (void *)(uintptr_t)v);
		break;
	case 's':
		if (ptx_read_text(p->w, p->i, p->lane, v, text, sizeof(text)))
			put(p, spec, text);
		break;
	default:
		memcpy(&d, &v, sizeof(d));
		put(p, spec, d);
	}
}
#pragma GCC diagnostic pop

/*
 * One directive at f, which points behind the '%'.  Returns what follows, or
 * NULL after a fault.
 */
static const char *convert(struct printer *p, const char *f)
{
	char spec[48] = "%";
	size_t n = 1;
	bool is64 = false;
	u64 v;
	char conv;

	while (*f && n < 32 && strchr("-+ #0123456789.*", *f)) {
		if (*f == '*') {
			if (!next_arg(p, 4, &v))
				return NULL;
			n += (size_t)snprintf(spec + n, 12, "%d", (s32)v);
		} else {
			spec[n++] = *f;
		}
		f++;
	}
	while (*f && strchr("hlLqjzt", *f)) {
		is64 |= *f != 'h';
		f++;
	}
	conv = *f;
	if (!conv)
		return f;
	f++;
	if (conv == '%') {
		put(p, "%%");
		return f;
	}
	if (!strchr("diuxXocpsfFeEgGaA", conv))
		return f;
	if (strchr("psfFeEgGaA", conv))
		is64 = true;
	if (!next_arg(p, is64 ? 8 : 4, &v))
		return NULL;
	if (strchr("diuxXo", conv)) {
		spec[n++] = 'l';
		spec[n++] = 'l';
	}
	spec[n++] = conv;
	spec[n] = '\0';
	put_spec(p, spec, conv, is64, v);
	return f;
}

static u32 print_lane(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	u64 format, u64 args)
{
	struct printer p = { .w = w, .i = i, .lane = lane, .args = args };
	char text[1024];
	const char *f = text;

	if (!ptx_read_text(w, i, lane, format, text, sizeof(text)))
		return 0;
	while (f && *f) {
		if (*f == '%') {
			f = convert(&p, f + 1);
			continue;
		}
		put(&p, "%c", *f);
		f++;
	}
	if (f && w->x->memory->print)
		w->x->memory->print(w->x->memory->self, p.out, p.len);
	return p.nr_args;
}

static void assert_lane(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	const struct ptx_callsite *s)
{
	char what[100] = "", file[60] = "", func[40] = "";

	if (s->nr_in < 4 ||
	    !ptx_read_text(w, i, lane, param(w, s, 0, lane), what,
			sizeof(what)) ||
	    !ptx_read_text(w, i, lane, param(w, s, 1, lane), file,
			sizeof(file)) ||
	    !ptx_read_text(w, i, lane, param(w, s, 3, lane), func,
			sizeof(func)))
		return;
	ptx_fault_at(w, i, lane, PTX_ASSERT, 0,
		"%s:%u: %s: assertion `%s' failed", file,
		(u32)param(w, s, 2, lane), func, what);
}

void ptx_builtin(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	const struct ptx_callsite *s = &w->x->module->sites[i->target];
	const struct ptx_func *f = w->x->module->funcs[s->func];
	u32 m;

	for (m = mask; m && w->x->status == PTX_OK; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u32 nr;

		if (f->builtin == PTX_ASSERTFAIL) {
			assert_lane(w, i, l, s);
			continue;
		}
		nr = print_lane(w, i, l, param(w, s, 0, l),
			param(w, s, 1, l));
		if (s->nr_out)
			memcpy(w->local + (u64)l * w->local_stride +
				w->local_base + s->out[0].offset, &nr, 4);
	}
}
