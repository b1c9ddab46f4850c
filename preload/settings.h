/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the environment without allocating, also before libc has set `environ`.
 */
#ifndef MT_PRELOAD_SETTINGS_H
#define MT_PRELOAD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* The environment as it is now, NULL when it cannot be found. */
char **mt_settings_environment(void);

/* The value of `name` in `environment`, or NULL. */
const char *mt_settings_get(char *const *environment, const char *name);

/* Is it set to 0, no, false or off, as a flag's variable is? */
bool mt_settings_is_off(char *const *environment, const char *name);

/*
 * A time as the option of that name takes it ("10", "0.5", "250ms"), in milliseconds; `most` when
 * it is longer, not there, or no time.
 */
uint64_t mt_settings_ms(char *const *environment, const char *name, uint64_t most);

/* Adds an entry to `environ`, in memory of our own. Without memory it is left out. */
void mt_settings_add(char *entry);

#endif
