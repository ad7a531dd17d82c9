/*
 * Build tool: turns files into C tables.
 *
 *   embed queries OUT.h OUT.c FILE...      statements: an enum and a table
 *   embed texts NAME OUT.h OUT.c FILE...   whole files: NAME_texts[] of {file name, text}
 *
 * A statement begins with a header line and ends before the next one:
 *
 *   -- JOB_CLAIM (driver, job, fence) change again
 *
 * name, parameters in order, what comes back (rows | change), and `again` when the statement may be
 * repeated although its first outcome is unknown. The number of parameters must equal the number of
 * question marks. Other comment lines are dropped.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096
#define NAME_MAX_BYTES 64

static FILE *header, *source;
static const char *at_file;
static int at_line;

static void stop(const char *why)
{
	(void)fprintf(stderr, "%s:%d: %s\n", at_file, at_line, why);
	exit(1);
}

static FILE *open_file(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);
	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static void put_quoted(const char *s)
{
	(void)fputc('"', source);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			(void)fprintf(source, "\\%c", c);
		else if (c == '\n')
			(void)fputs("\\n", source);
		else if (c < 0x20 || c >= 0x7f)
			(void)fprintf(source, "\\%03o", c);
		else
			(void)fputc(c, source);
	}
	(void)fputc('"', source);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* -- statements -------------------------------------------------------------------------------- */

static int wanted, found;
static bool inside;

static void end_statement(void)
{
	if (!inside)
		return;
	if (wanted != found)
		stop("the parameters of the statement before this line do not match its question "
		     "marks");
	(void)fputs("},\n", source);
	inside = false;
}

static int count_names(const char *list)
{
	int n = 0;
	bool in_name = false;
	for (; *list; list++) {
		bool letter = isalnum((unsigned char)*list) || *list == '_';
		n += letter && !in_name;
		in_name = letter;
	}
	return n;
}

static void begin_statement(const char *line)
{
	char name[NAME_MAX_BYTES], params[512] = "", kind[16], again[16] = "";
	end_statement();
	int n = sscanf(line, "-- %63[A-Z0-9_] (%511[^)]) %15s %15s", name, params, kind, again);
	if (n < 3)
		n = sscanf(line, "-- %63[A-Z0-9_] () %15s %15s", name, kind, again) + 1,
		params[0] = 0;
	if (n < 3 || (strcmp(kind, "rows") != 0 && strcmp(kind, "change") != 0))
		stop("not a statement header: -- NAME (parameters) rows|change [again]");
	wanted = count_names(params);
	found = 0;
	inside = true;
	(void)fprintf(header, "\tSQL_%s,\n", name);
	(void)fprintf(source,
		"\t[SQL_%s] = {.name = \"%s\", .params = %d, .rows = %s, .again = %s, .text =\n",
		name, name, wanted, strcmp(kind, "rows") == 0 ? "true" : "false",
		strcmp(again, "again") == 0 || strcmp(kind, "rows") == 0 ? "true" : "false");
}

static bool is_header(const char *line)
{
	return strncmp(line, "-- ", 3) == 0 && isupper((unsigned char)line[3]) &&
	       (isupper((unsigned char)line[4]) || line[4] == '_') && strchr(line, '(');
}

static void add_line(char *line)
{
	if (is_header(line)) {
		begin_statement(line);
	} else if (strncmp(line, "--", 2) != 0 && line[strspn(line, " \t\n")] != 0) {
		if (!inside)
			stop("SQL before the first statement header");
		for (const char *c = line; *c; c++)
			found += *c == '?';
		char *end = strrchr(line, ';');
		if (end && end[strspn(end + 1, " \t\n") + 1] == 0)
			*end = 0;
		(void)fputs("\t\t", source);
		put_quoted(line);
		(void)fputc('\n', source);
	}
}

static void queries(int n, char **files)
{
	char line[LINE_MAX_BYTES];
	(void)fputs("#pragma once\n#include <stdbool.h>\nenum sql {\n", header);
	(void)fputs("#include \"sql.h\"\nconst struct sql_row sql_rows[] = {\n", source);
	for (int i = 0; i < n; i++) {
		FILE *f = open_file(files[i], "r");
		at_file = files[i];
		for (at_line = 1; fgets(line, sizeof line, f); at_line++)
			add_line(line);
		end_statement();
		(void)fclose(f);
	}
	(void)fputs(
		"\tSQL__MAX\n};\nstruct sql_row {\n\tconst char *name, *text;\n\tunsigned params;\n"
		"\tbool rows, again;\n};\nextern const struct sql_row sql_rows[];\n",
		header);
	(void)fputs("};\n", source);
}

/* -- whole files ------------------------------------------------------------------------------- */

static void texts(const char *name, int n, char **files)
{
	char line[LINE_MAX_BYTES];
	(void)fprintf(header,
		"#pragma once\n#ifndef TEXT_FILE\n#define TEXT_FILE\nstruct text_file {\n"
		"\tconst char *name, *text;\n};\n#endif\n"
		"/* Ends with a NULL name. */\nextern const struct text_file %s_texts[];\n",
		name);
	/* C99 promises only 4095 characters of a string; the compilers we use take any length. */
	(void)fprintf(source,
		"#include \"%s_texts.h\"\n"
		"#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n",
		name);
	(void)fprintf(source, "const struct text_file %s_texts[] = {\n", name);
	for (int i = 0; i < n; i++) {
		FILE *f = open_file(files[i], "r");
		(void)fprintf(source, "\t{\"%s\",\n\t\t\"\"", base_name(files[i]));
		while (fgets(line, sizeof line, f)) {
			(void)fputs("\n\t\t", source);
			put_quoted(line);
		}
		(void)fputs("},\n", source);
		(void)fclose(f);
	}
	(void)fputs("\t{0}};\n", source);
}

int main(int argc, char **argv)
{
	bool whole = argc >= 5 && strcmp(argv[1], "texts") == 0;
	if (!whole && (argc < 4 || strcmp(argv[1], "queries") != 0)) {
		(void)fputs("usage: embed queries H C FILE... | embed texts NAME H C FILE...\n",
			stderr);
		return 2;
	}
	int first = whole ? 3 : 2;
	header = open_file(argv[first], "w");
	source = open_file(argv[first + 1], "w");
	if (whole)
		texts(argv[2], argc - first - 2, argv + first + 2);
	else
		queries(argc - first - 2, argv + first + 2);
	return fclose(header) || fclose(source);
}
