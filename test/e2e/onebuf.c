/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One allocation that holds all tensors, as loaders and framework allocators
 * make them: uploads go piece by piece to offsets aligned to 256 bytes and no
 * more, launches name the middle of the allocation.  Some tensors are loaded
 * anew half-way.  Every digest is checked on the host.
 */
#include "test/e2e/e2e_digest.h"

static const char ptx[] = E2E_PTX_HEAD E2E_DIGEST_KERNEL;

struct piece {
	size_t off, size;
};

/* Between 256 bytes and twice `mean`, in steps of 256, one after another. */
static size_t layout(struct piece *p, size_t nr, size_t mean, uint64_t *seed)
{
	size_t off = 256;

	for (size_t i = 0; i < nr; i++) {
		p[i].off = off;
		p[i].size = 256 + e2e_random(seed) % (2 * mean) / 256 * 256;
		/* Every third has a gap behind it. */
		off += p[i].size + (i % 3 ? 0 : 256 * (1 + i % 7));
	}
	return off;
}

/* In pieces of at most 1 MiB, less the odd bit, front to back. */
static void upload(CUdeviceptr buf, unsigned char *host, const struct piece *p,
	uint64_t *seed)
{
	const size_t most = (1 << 20) - 256;

	e2e_fill_random(host + p->off, p->size, seed);
	for (size_t done = 0; done < p->size; done += most) {
		size_t n = p->size - done < most ? p->size - done : most;

		CU(cuMemcpyHtoD, buf + p->off + done, host + p->off + done, n);
	}
}

int main(int argc, char **argv)
{
	uint64_t tensors = 24, mean = 2 << 20, rounds = 3, seed = 1;
	uint64_t hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "tensors", &tensors, 0 }, { "bytes", &mean, 0 },
		{ "rounds", &rounds, 0 }, { "seed", &seed, 0 },
	};
	struct piece *p;
	unsigned char *host;
	CUdeviceptr buf, out;
	CUfunction digest;
	CUmodule mod;
	CUdevice dev;
	CUstream s;
	size_t size;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	mod = e2e_module(ptx);
	digest = e2e_kernel(mod, "digest");
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	p = e2e_host(tensors * sizeof(*p));
	size = layout(p, tensors, mean, &seed);
	host = e2e_host(size);
	buf = e2e_alloc(size);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (size_t i = 0; i < tensors; i++)
		upload(buf, host, &p[i], &seed);
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);

	for (uint64_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < tensors; i++) {
			uint32_t got = e2e_digest_now(digest, s, out,
				buf + p[i].off, p[i].size, r * 2 + 1);

			if (got != e2e_digest(host + p[i].off, p[i].size,
					r * 2 + 1))
				E2E_FAIL("round %llu: tensor %zu is wrong",
					(unsigned long long)r, i);
			hash = e2e_hash(hash, &got, sizeof(got));
		}
		for (size_t i = r; i < tensors; i += 5)
			upload(buf, host, &p[i], &seed);
		CU(cuStreamSynchronize, CU_STREAM_LEGACY);
	}
	CU(cuMemFree, buf);
	CU(cuMemFree, out);
	CU(cuStreamDestroy, s);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	free(p);
	free(host);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
