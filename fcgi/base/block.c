/* Brackets around every wait. Brackets may nest; only the outermost counts. */
#include "block.h"

#include <stddef.h>

static _Thread_local const struct block_hooks *own_hooks;
static _Thread_local void *own_pool;
static _Thread_local int depth;

void block_join(const struct block_hooks *hooks, void *pool)
{
	own_hooks = hooks;
	own_pool = pool;
}

void block_begin(void)
{
	if (depth++ == 0 && own_hooks)
		own_hooks->begin(own_pool);
}

void block_end(void)
{
	if (--depth == 0 && own_hooks)
		own_hooks->end(own_pool);
}
