/*
 * Fuzz target: whatever the gate accepts, the parser reads, and what we print of it the gate
 * accepts again and the parser reads as the same. A refusal has a detail.
 */
#include "buf.h"
#include "json.h"

#include <assert.h>
#include <string.h>

#define TEXT_MAX (32u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const char *text = (const char *)p;
	CLEANUP_JSON struct json *root = NULL, *again = NULL;
	if (json_gate(text, n)) {
		assert(*fault_of(ERR_BAD_JSON)->detail);
		return 0;
	}
	assert(json_parse(text, n, &root) == OK);
	CLEANUP_BUF struct buf first, second;
	buf_init(&first, TEXT_MAX);
	buf_init(&second, TEXT_MAX);
	json_print(root, &first);
	assert(json_parse(first.p, first.n, &again) == OK);
	json_print(again, &second);
	assert(strcmp(first.p, second.p) == 0);
	assert(!strpbrk(first.p, "<>&"));
	return 0;
}
