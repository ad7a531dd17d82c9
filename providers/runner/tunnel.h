/* A public name for the runner through cloudflared, when it is installed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Starts it for our local address and waits for the name; false after printing the reason. */
bool tunnel_start(const char *local, char *url, size_t size);
void tunnel_stop(void);

/* Copies the https address of a quick tunnel out of a line of its output. */
bool tunnel_find(const char *line, char *url, size_t size);
