/*
 * The NDJSON stream of one command, frame by frame. Any number of followers read one command, each
 * with offsets of its own; a follower that goes away changes nothing.
 */
#pragma once
#include "buf.h"

#include <stdbool.h>
#include <stdint.h>

struct exec;
struct follow;

#define FRAME_RAW_MAX   (256u << 10)
#define FRAME_BYTES_MAX (400u << 10) /* base64 of it and the head */
#define HEARTBEAT_MS    10000

/* Takes over the reference to e. */
struct follow *follow_new(struct exec *e, int64_t stdout_at, int64_t stderr_at, int64_t follow_ms);
/* Waits for the next frame and appends it with its newline; false after the last one. */
bool follow_next(struct follow *f, struct buf *b);
void follow_free(struct follow *f);
