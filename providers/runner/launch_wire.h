/* What the HTTP side and the launcher say to each other: one fixed packet each way. */
#pragma once
#include "config.h"

#include <stdbool.h>
#include <stddef.h>

enum launch_op { LAUNCH_NEW = 1, LAUNCH_END };

struct launch_ask {
	enum launch_op op;
	char id[SANDBOX_ID_SIZE];
	enum network network;
	struct limits limits;
};
struct launch_reply {
	bool ok;
	unsigned controllers;
	char why[160]; /* fixed text of ours */
};

/* Sends a packet, with a descriptor when fd is not -1. */
bool launch_send(int to, const void *p, size_t n, int fd);

void launcher_main(const struct config *c, int fd, void (*at_end)(void)) __attribute__((noreturn));
