// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program without an interpreter. */
int main(void)
{
	return 0;
}
