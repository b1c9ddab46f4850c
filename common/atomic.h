/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The atomics that we use, with the memory order in the name. Plain C11 atomics on plain integers
 * (the GCC builtins), so that a structure in shared memory has one layout for all its users.
 * TSan understands them. There is no seq_cst here: who needs it writes the reason beside it.
 */
#ifndef MT_COMMON_ATOMIC_H
#define MT_COMMON_ATOMIC_H

#define mt_load_relaxed(p)	  __atomic_load_n((p), __ATOMIC_RELAXED)
#define mt_load_acquire(p)	  __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define mt_store_relaxed(p, v)	  __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define mt_store_release(p, v)	  __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define mt_add_relaxed(p, v)	  __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define mt_add_acq_rel(p, v)	  __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define mt_or_relaxed(p, v)	  __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define mt_sub_acq_rel(p, v)	  __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)
#define mt_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define mt_cas_acq_rel(p, want, v) \
	__atomic_compare_exchange_n((p), (want), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

#endif
