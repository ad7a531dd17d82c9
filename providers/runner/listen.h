/* The listening socket: loopback or a unix socket, never an address that others can reach. */
#pragma once
#include <stddef.h>

/* Binds it and writes its address as a URL; -1 after printing the reason. It does not listen yet.
 */
int listen_open(const char *where, char *url, size_t size);
/* Removes the file of a unix socket that was bound here. */
void listen_close(void);
