/* The rows of the providers: whole, in order, and in agreement with their operations. */
#include "bounds.h"
#include "provider.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const order[] = {"vercel", "e2b", "daytona", "modal", "workers", "tunnel",
	"runloop", "codesandbox", "railway", "boat", "browserbase", "browser-use", NULL};

static void the_order_is_the_declared_one(void **state)
{
	(void)state;
	int i = 0;
	for (; order[i]; i++)
		assert_string_equal(providers[i]->name, order[i]);
	assert_null(providers[i]);
}

static void every_name_is_found_and_no_other(void **state)
{
	static const char *const others[] = {
		"", "Vercel", "vercel ", "verce", "vercel2", "runner", "*"};
	(void)state;
	for (int i = 0; order[i]; i++)
		assert_ptr_equal(provider_find(order[i]), providers[i]);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_null(provider_find(others[i]));
}

static void every_fact_is_there(void **state)
{
	(void)state;
	for (int i = 0; providers[i]; i++) {
		const struct provider *p = providers[i];
		assert_true(name_safe(p->name, KEY_NAME_CHARS_MAX));
		assert_true(strlen(p->title) > 0 && p->how[strlen(p->how) - 1] == '.');
		assert_true(p->needs & WANT_TOKEN);
		assert_false(p->needs & p->takes);
		assert_in_range(p->timeout_max_s, 1, TIMEOUT_S_MAX);
		assert_true(!p->price || p->price[strlen(p->price) - 1] == '.');
		assert_non_null(p->setup[0].text);
	}
}

static void every_setup_tells_what_to_save(void **state)
{
	(void)state;
	for (int i = 0; providers[i]; i++) {
		const struct setup_step *s = providers[i]->setup;
		bool saves = false;
		for (; s->text; s++) {
			saves = saves || strstr(s->text, "save_provider_key");
			assert_int_equal(s->text[strlen(s->text) - 1], '.');
			assert_true(!s->link || strncmp(s->link, "https://", 8) == 0);
		}
		assert_true(saves);
	}
}

static void every_link_is_https(void **state)
{
	(void)state;
	for (int i = 0; providers[i]; i++) {
		const char *const links[] = {providers[i]->docs_url, providers[i]->price_url};
		for (int k = 0; k < 2; k++)
			assert_true(!links[k] || strncmp(links[k], "https://", 8) == 0);
	}
}

static void a_connected_provider_has_every_operation(void **state)
{
	static const char *const connected[] = {"tunnel", "vercel"};
	(void)state;
	for (int i = 0; providers[i]; i++) {
		const struct provider_ops *o = providers[i]->ops;
		if (!o)
			continue;
		assert_true(o->check && o->create && o->find && o->destroy && o->put && o->exec);
		assert_int_equal(o->list != NULL, (providers[i]->can & CAN_LIST) != 0);
	}
	for (size_t i = 0; i < sizeof connected / sizeof connected[0]; i++)
		assert_non_null(provider_find(connected[i])->ops);
}

/* -- addresses --------------------------------------------------------------------------------- */

#define OF(name) provider_base(provider_find(name))

static void a_provider_is_asked_at_its_own_address_unless_told(void **state)
{
	(void)state;
	for (int i = 0; providers[i]; i++)
		assert_ptr_equal(provider_base(providers[i]), providers[i]->base);
	assert_int_equal(provider_bases_set(""), OK);
	assert_int_equal(provider_bases_set(" , "), OK);
	assert_string_equal(OF("vercel"), "https://vercel.com/api");
	assert_int_equal(provider_bases_set("vercel=https://127.0.0.1:8443/api//"), OK);
	assert_string_equal(OF("vercel"), "https://127.0.0.1:8443/api");
	assert_int_equal(provider_bases_set(" ,vercel=https://gateway.example/v , "), OK);
	assert_string_equal(OF("vercel"), "https://gateway.example/v");
}

static void an_address_that_can_not_be_used_is_refused_and_changes_nothing(void **state)
{
	static char longest[64 + 160] = "vercel=https://";
	static const char *const lists[] = {"vercel", "=", "=https://x",
		"vercel=", "vercel=https://", "vercel=https:///", "vercel=http://x",
		"vercel=HTTPS://x", "vercel=ftp://x", "Vercel=https://x", "verce=https://x",
		"vercel2=https://x", "nobody=https://x", "tunnel=https://x", "vercel =https://x",
		longest};
	(void)state;
	size_t front = strlen(longest);
	memset(longest + front, 'a', 160);
	assert_int_equal(provider_bases_set("vercel=https://first.example"), OK);
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		assert_int_equal(provider_bases_set(lists[i]), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "outbound.provider_urls");
		assert_string_equal(OF("vercel"), "https://first.example");
	}
	assert_null(OF("tunnel"));
	/* One character less than what is too long. */
	longest[front + 160 - 9] = '\0';
	assert_int_equal(provider_bases_set(longest), OK);
	assert_int_equal(strlen(OF("vercel")), 159);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_the_declared_one),
		cmocka_unit_test(every_name_is_found_and_no_other),
		cmocka_unit_test(every_fact_is_there),
		cmocka_unit_test(every_setup_tells_what_to_save),
		cmocka_unit_test(every_link_is_https),
		cmocka_unit_test(a_connected_provider_has_every_operation),
		cmocka_unit_test(a_provider_is_asked_at_its_own_address_unless_told),
		cmocka_unit_test(an_address_that_can_not_be_used_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
