/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenancy.c, pool.c and demote.c share.  Everything is guarded by the
 * device's pool_lock.
 */
#ifndef BALLAST_TENANCY_INT_H
#define BALLAST_TENANCY_INT_H

#include "shim/conf.h"
#include "shim/tenancy.h"
#include "shim/unit.h"

/* Work that used a slot: the last event of one stream. */
struct reader {
	struct context *context;
	CUstream stream;
	unsigned long thread;	/* tells default streams of threads apart */
	unsigned epoch;		/* of the context's stream handles */
	uint64_t begun;		/* tickets from before and after recording */
	uint64_t recorded;
	struct event *event;	/* referenced */
};

struct slot {
	uint32_t chunk;
	uint32_t page;		/* tenant, or PAGE_NONE */
	uint32_t pins;
	bool busy;		/* a thread is changing the tenant */
	bool used;		/* hit since the hand passed */
	bool dirty;		/* the tenant has been written by a copy */
	bool touched;		/* a kernel may have written it */
	struct event *ready;	/* referenced; the tenant's bytes are there */
	struct reader *readers;	/* owned */
	uint32_t nr_readers;
	uint32_t max_readers;
};

struct tenancy {
	const struct layout *layout;
	struct schedule *schedule;	/* of the plan in force, or NULL */
	struct slot *slots;	/* owned; pool_max entries */
	uint32_t nr_slots;
	uint32_t hand;		/* next slot of the ring */
	uint32_t stamp;		/* counts sets; marks pages of the current one */
	uint32_t oldest;	/* resident pages by age */
	uint32_t newest;
	uint32_t nr_resident;
	uint32_t nr_streamed;
	uint32_t nr_lost;	/* chunks that could not be unmapped */
	uint64_t tickets;	/* of calls that waited for slots */
	uint64_t first;		/* who is served before others; 0: nobody */
	uint32_t backing;	/* allocations that may need the pool soon */
	bool growing;		/* a thread is adding slots */
	bool demoting;		/* a thread is taking chunks from residents */
	uint32_t unaliased;	/* times that all aliases went */
	bool frozen;
	uint32_t floor;		/* pages that some call needs at once */
	uint64_t complained;	/* largest request a message was given for */
};

static inline void page_word_set(struct device *d, uint32_t page,
	uint64_t word)
{
	__atomic_store_n(&d->words[page], word, __ATOMIC_SEQ_CST);
}

static inline uint64_t page_word(const struct alloc *a, enum page_tier tier)
{
	return (uint64_t)a->id << PAGE_ALLOC_SHIFT | tier;
}

static inline enum page_tier page_tier(const struct device *d, uint32_t page)
{
	return (enum page_tier)(device_word(d, page) & PAGE_TIER_MASK);
}

/* The private address of a slot. */
static inline CUdeviceptr slot_address(const struct device *d, uint32_t slot)
{
	return d->pool_base + ((uint64_t)slot << d->page_shift);
}

/* The unit of a slot's tenant, if launches may still be on it; or NULL. */
static inline struct unit *slot_open_unit(const struct device *d,
	const struct slot *s)
{
	struct unit *u;

	if (s->page == PAGE_NONE || d->pages[s->page].unit == PAGE_NONE)
		return NULL;
	u = &d->tenancy->schedule->units[d->pages[s->page].unit];
	return u->busy || u->nr_users > 0 ||
		__atomic_load_n(&u->open, __ATOMIC_SEQ_CST) ||
		__atomic_load_n(&u->pins, __ATOMIC_SEQ_CST) ? u : NULL;
}

/* Visits until the program comes to this one; 0: it is there. */
static inline uint32_t schedule_distance(const struct schedule *sc,
	const struct unit *u)
{
	return visits_distance(&sc->visits, u->index);
}

/* Whether a page stays mapped to a slot that it leaves. */
static inline bool schedule_keeps(const struct device *d, uint32_t page,
	uint32_t slot)
{
	return d->tenancy->schedule != NULL && d->tenancy->schedule->fast &&
		!d->tenancy->schedule->ending &&
		d->pages[page].unit != PAGE_NONE &&
		d->pages[page].place == slot;
}

uint64_t tenancy_deadline(void);

/* Resident pages by age. */
void resident_add(struct device *d, uint32_t page) REQUIRES(&d->pool_lock);
void resident_remove(struct device *d, uint32_t page)
	REQUIRES(&d->pool_lock);

/*
 * Adds slots on these chunks, which the pool owns from then on.  Drops and
 * retakes pool_lock.  0 or -EIO: the chunks are recycled.
 */
int pool_add(struct device *d, const uint32_t *chunks, uint32_t n)
	REQUIRES(&d->pool_lock);
/*
 * Where other threads have chunks in their hands (allocations, parts that move
 * or go): waits for a change.  false: none have, or the deadline passed.  For
 * a caller without such chunks, who would wait for itself.
 */
bool hands_wait(struct device *d, uint64_t deadline)
	REQUIRES(&d->pool_lock);
/*
 * Turns.  turn_yield() waits while another call is first, until the deadline of
 * turn_patience(); true: it waited, so look again.  turn_first() makes a call
 * that must wait the first, where nobody is; turn_end() when it has what it
 * wants, or gives up.
 */
uint64_t turn_patience(void);
bool turn_yield(struct device *d, uint64_t ticket, uint64_t deadline)
	REQUIRES(&d->pool_lock);
void turn_first(struct device *d, uint64_t *ticket) REQUIRES(&d->pool_lock);
void turn_end(struct device *d, uint64_t ticket) REQUIRES(&d->pool_lock);
/* Takes back the pins of a set; wakes who waits for them. */
void unpin_all(struct device *d, struct page_set *s)
	REQUIRES(&d->pool_lock);
/*
 * A streamed page stays where it has been mapped, in a chunk of its own or in
 * host memory (where: the chunk, or host.c's index); its arena range is freed.
 */
void page_settles(struct device *d, uint32_t page, enum page_tier tier,
	uint32_t where) REQUIRES(&d->pool_lock);
/* Drops tenant, readers and events. */
void slot_clear(struct slot *s);
/* The tenant's bytes differ from the arena's, or may. */
static inline bool slot_must_save(const struct device *d,
	const struct slot *s)
{
	if (s->dirty || !s->touched)
		return s->dirty;
	/* The user's word that kernels do not write weights. */
	return conf.verify != CONF_VERIFY_OFF || s->page == PAGE_NONE ||
		!__atomic_load_n(&d->pages[s->page].uploaded,
			__ATOMIC_RELAXED);
}
/*
 * Notes a reader (a reference of its own is taken); false: no memory.  Tickets
 * rise; they are drawn before and after the event is recorded.
 */
bool reader_add(struct slot *slot, const struct reader *who) WARN_UNUSED;
uint64_t reader_ticket(void);
/*
 * Ends of allocations.  Waits until no thread moves or pins a page of it;
 * false: the deadline passed.
 */
bool drop_settle(struct device *d, const struct alloc *a)
	REQUIRES(&d->pool_lock);
/* References to every event that the pages' bytes still depend on. */
size_t drop_events(struct device *d, const struct alloc *a,
	struct event **out) REQUIRES(&d->pool_lock);
/* Gives back what an unmapped page had; lost: it may still be mapped. */
void drop_page(struct device *d, uint32_t page, bool lost)
	REQUIRES(&d->pool_lock);
/*
 * Brings the pool to at least `slots` slots with chunks that are free or that
 * residents give up; pages of `keep` (may be NULL) stay.  Drops and retakes
 * pool_lock.  Returns how many slots were added.
 */
uint32_t pool_grow(struct device *d, uint32_t slots,
	const struct page_set *keep) REQUIRES(&d->pool_lock);
/* Chunks that tenancy_reclaim() could give back without moving a byte. */
uint32_t tenancy_idle_locked(const struct device *d)
	REQUIRES(&d->pool_lock);
/*
 * Every tenant goes to the arena, and slots from n on are given up.  Waits for
 * pins and readers; c is current.  On failure some tenants may have stayed.
 */
CUresult pool_empty(struct device *d, struct context *c, uint32_t n)
	REQUIRES(&d->pool_lock) WARN_UNUSED;
/* Slots the layout wants, rounded up. */
uint32_t pool_target(const struct device *d);

/*
 * Moves up to `want` resident pages to the arena, newest first, and stores
 * their chunks.  Drops and retakes pool_lock.  Returns how many.
 */
uint32_t demote(struct device *d, uint32_t want, const struct page_set *keep,
	uint32_t *chunks) REQUIRES(&d->pool_lock);
/*
 * The same for those of these n pages that are of the tier: residents, whose
 * chunks are stored in was[n], or pages in host memory, which is given back.
 */
uint32_t demote_pages(struct device *d, const uint32_t *pages, uint32_t n,
	enum page_tier tier, uint32_t *was) REQUIRES(&d->pool_lock);

#endif
