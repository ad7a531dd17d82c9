/*
 * Brackets around every wait (database, provider, sleep, condition).
 *
 * A worker lets only a few of its threads run at once (worker.h); a thread that waits gives its
 * place to another one. Threads that belong to no pool bracket for free.
 */
#pragma once

struct block_hooks {
	void (*begin)(void *pool);
	void (*end)(void *pool);
};

/* Makes this thread a member of a pool; hooks and pool outlive it. */
void block_join(const struct block_hooks *hooks, void *pool);
void block_begin(void);
void block_end(void);
