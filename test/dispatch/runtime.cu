/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the CUDA runtime, for the dispatch tests: everything that a
 * runtime does before its first call, and a kernel, so that there is code to
 * register.  Prints the result of the first call; the software driver does not
 * answer the runtime's check of the driver, so that is an error there.
 */
#include <cstdio>

__global__ void twice(float *p)
{
	p[threadIdx.x] *= 2;
}

int main()
{
	float *p = nullptr;
	cudaError_t r = cudaMalloc(&p, 4096);

	printf("cudaMalloc: %d\n", (int)r);
	if (r == cudaSuccess) {
		twice<<<1, 32>>>(p);
		cudaFree(p);
	}
	return 0;
}
