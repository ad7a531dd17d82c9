/*
 * What a person or an agent must know before it saves a key: which members of save_provider_key a
 * provider takes and what each is, what ends a sandbox that nobody stops, what is billed and what
 * goes on being billed, limits, and the files of a bridge where one is to be deployed. The steps in
 * order are in the provider's own row.
 */
#pragma once
#include <stddef.h>

struct setup_member {
	unsigned want;    /* one bit of enum credential_field */
	const char *text; /* what it is and where it is found */
};

struct setup_file {
	const char *path; /* in the folder of the bridge */
	const char *text; /* its whole content */
};

#define SETUP_MEMBERS 5
#define SETUP_LIMITS  4
#define SETUP_FILES   12

struct setup {
	const char *provider;
	struct setup_member members[SETUP_MEMBERS]; /* up to want 0: needed ones first */
	const char *ends;                           /* the provider's own end of a sandbox */
	const char *billed, *stays;                 /* while a job runs; when nothing runs */
	const char *limits[SETUP_LIMITS];           /* up to NULL */
	const char *bridge;                         /* folder of the bridge; NULL: there is none */
	const char *deploy;                         /* one line, run in that folder */
};

const struct setup *setup_of(const char *provider); /* NULL: no such provider */

/* The files of a provider's bridge, in the order in which they are read best. */
size_t setup_files(const char *provider, struct setup_file ret[SETUP_FILES]);
