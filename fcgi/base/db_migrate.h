/*
 * Brings a schema up to date: whole files of statements, numbered by their names, forward only.
 */
#pragma once
#include "db.h"
#include "migration_texts.h"

/* Applies every file whose number is above the schema's. MariaDB commits each DDL statement by
 * itself, so a file that failed half-way must be repaired by hand: its number is not recorded.
 * ERR_DB_DOWN, ERR_INTERNAL with file and code in the detail. */
MUST_USE enum err db_migrate(
	const struct db_conf *conf, const struct text_file *files, unsigned *ret_applied);
