/* The HTTP side: `sbx-bridge` version 1 over a listening socket. */
#pragma once
#include <stdbool.h>

struct config;

#define HTTP_CONNECTIONS_MAX 800 /* 100 sandboxes with several followers each */
#define HTTP_IDLE_S          75  /* longer than a follow call may be silent */
#define BODY_DISCARD_MAX                                                                           \
	(32u << 20) /* read and thrown away to be able to answer with a refusal                    \
		     */

bool serve_start(int listener);
void serve_stop(void);
