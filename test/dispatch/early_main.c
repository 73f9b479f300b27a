/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Needs the library whose constructor uses the driver.
 */
extern int early_result;

int main(void)
{
	return early_result == 42 ? 0 : 1;
}
