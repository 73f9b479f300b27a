/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlopen as the program calls them: see resolve.c.  A C function
 * would leave its own return address where the C library looks for the
 * caller's (compilers turn a last call into a jump at some levels only, and
 * sanitizers never), so the way on is a jump from here.
 *
 * Each asks its C function with the caller's arguments (and, for dlsym, the
 * return address as a third), which answers in rax and rdx: struct answer.
 */

	.text

/* void *dlsym(void *handle, const char *name) */
	.globl	shim_dlsym
	.type	shim_dlsym, @function
	.p2align 4
shim_dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rdx
	call	resolve_dlsym
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rdx, %rdx
	jz	1f
	jmp	*%rdx
1:	ret
	.cfi_endproc
	.size	shim_dlsym, . - shim_dlsym

/* void *dlopen(const char *file, int mode); the mode may have changed. */
	.globl	shim_dlopen
	.type	shim_dlopen, @function
	.p2align 4
shim_dlopen:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	call	resolve_dlopen
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movl	%eax, %esi
	jmp	*%rdx
	.cfi_endproc
	.size	shim_dlopen, . - shim_dlopen

/*
 * Both versions that the C library has: a reference to either, and a versioned
 * look-up by another interposer, finds us.
 */
	.globl	shim_dlsym_old
	.type	shim_dlsym_old, @function
	.set	shim_dlsym_old, shim_dlsym
	.globl	shim_dlopen_old
	.type	shim_dlopen_old, @function
	.set	shim_dlopen_old, shim_dlopen

	.symver	shim_dlsym, dlsym@@GLIBC_2.34
	.symver	shim_dlsym_old, dlsym@GLIBC_2.2.5
	.symver	shim_dlopen, dlopen@@GLIBC_2.34
	.symver	shim_dlopen_old, dlopen@GLIBC_2.2.5

	.section .note.GNU-stack, "", @progbits
