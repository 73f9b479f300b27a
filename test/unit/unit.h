/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() of a unit test program: runs the suite that SUITE returns, quietly
 * unless a test fails.
 */
#ifndef BALLAST_TEST_UNIT_H
#define BALLAST_TEST_UNIT_H

#include <check.h>

static inline int unit_run(Suite *s)
{
	SRunner *runner = srunner_create(s);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
