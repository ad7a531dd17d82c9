/*
 * What the runner and the first process of a box say to each other.
 *
 * A message is one packet of a SOCK_SEQPACKET pair: the head, then NUL-terminated strings. Commands
 * carry three file descriptors (stdin, stdout, stderr). The box belongs to the user's code, so the
 * runner treats everything it receives as input from outside.
 */
#pragma once
#include <stdint.h>

#define WIRE_BYTES_MAX  (96u << 10) /* 32 KiB of command, the variables of the box, heads */
#define WIRE_JOBS_MAX   1024        /* running commands of one box */
#define WIRE_SOCKET_FD  3           /* where init finds its end of the pair */
#define WIRE_KILL_AFTER 5           /* seconds between TERM and KILL at a time limit */

enum wire_op {
	/* to init */
	WIRE_RUN = 1, /* x: seconds or 0, a: argc, b: envc; then cwd, argv..., NAME=value... */
	WIRE_READ,    /* x: offset, y: length; then path */
	WIRE_WRITE,   /* x: offset, y: length; then path */
	WIRE_SIGNAL,  /* a: signal; to the process group of seq */
	/* from init */
	WIRE_HELLO,
	WIRE_STARTED, /* the command runs */
	WIRE_REFUSED, /* a: errno, b: enum wire_stage; nothing ran */
	WIRE_EXIT,    /* a: 0 - 255 (file calls: an errno), b: 1 when its time was over */
};

enum wire_stage { WIRE_STAGE_FORK, WIRE_STAGE_CWD, WIRE_STAGE_FULL };

struct wire_head {
	uint32_t op, seq;
	int32_t a, b;
	int64_t x, y;
};
