/*
 * Parts of a drive that job_drive.c and job_create.c share.
 */
#pragma once
#include "job.h"

/* Notes the outcome with the detail of the error at hand; always false, for `return`. */
bool drive_ends(struct drive *d, enum outcome outcome, enum err why);
/* A move that failed for good is a fault of ours; the job is left to whoever claims it. */
bool drive_held(struct drive *d, enum err e);
/* False when the job is not ours any more, or somebody wants it cancelled (which ends it). */
bool drive_goes_on(struct drive *d);
bool drive_is_draining(void);

/* Opens a saved key for the drive's call, whatever time the database takes. */
MUST_USE enum err drive_open_key(struct drive *d, struct id key);

/* Gets a sandbox from the first candidate that gives one. False: d->end says how the job ended, or
 * the job is not ours any more. */
bool drive_create(struct drive *d);
/* Notes that the provider did its part once the command has begun, or that it did not. */
void drive_note_health(struct drive *d);
