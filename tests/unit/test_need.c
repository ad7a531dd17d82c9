/* The estimate of a job's memory, its judgement, and the signs of death by memory. */
#include "arena.h"
#include "err.h"
#include "handlers/need.h"
#include "bounds.h"
#include "shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_row_of_the_table_is_well_formed_and_matched_by_its_example(void **state)
{
	(void)state;
	size_t n = 0;
	for (const struct need_row *r = need_rows; r->kind; r++, n++) {
		struct need need;
		assert_true(*r->kind && r->example && *r->example);
		assert_non_null(r->patterns[0]);
		for (const char *const *p = r->patterns; *p; p++) {
			assert_null(strstr(*p, "  "));
			assert_null(strstr(*p, "||"));
			assert_true(**p && **p != ' ' && (*p)[strlen(*p) - 1] != ' ');
		}
		assert_true(
			r->basis == NEED_ROW || r->basis == NEED_GUESS || r->basis == NEED_LIGHT);
		assert_true(r->mb + r->worker_mb >= 50 && r->mb <= 65536 && r->serial_mb <= 65536);
		assert_true((r->worker_mb > 0) == (r->options != NULL));
		need_from_table(r->example, 4, &need);
		if (strcmp(need.kind, r->kind) != 0)
			fail_msg("\"%s\" is not %s but %s", r->example, r->kind, need.kind);
		assert_int_equal(need.basis, r->basis);
		for (const struct need_row *k = need_rows; k < r; k++)
			assert_string_not_equal(k->kind, r->kind);
	}
	assert_true(n >= 50);
}

struct case_row {
	const char *job;
	int cores;
	int64_t plain_mb;
	const char *kind;
};

/* The margin of a quarter, rounded up; settings, light and unknown commands have none. */
static int64_t expected_mb(const struct need *need, int64_t plain)
{
	return need->basis == NEED_ROW || need->basis == NEED_GUESS ? (plain * 5 + 3) / 4 : plain;
}

static void check_cases(const struct case_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct need need;
		need_from_table(rows[i].job, rows[i].cores, &need);
		if (need.plain_mb != rows[i].plain_mb || strcmp(need.kind, rows[i].kind) != 0)
			fail_msg("\"%.200s\" is %s, %lld MB; not %s, %lld MB", rows[i].job,
				need.kind, (long long)need.plain_mb, rows[i].kind,
				(long long)rows[i].plain_mb);
		if (!need.summed)
			assert_int_equal(need.mb, expected_mb(&need, need.plain_mb));
	}
}
#define CHECK(rows) check_cases(rows, sizeof(rows) / sizeof *(rows))

#define LIGHT   "light command"
#define UNKNOWN "unknown command"
#define LIMIT   "memory limit of the command"
#define NODE    "Node heap setting"
#define JVM     "JVM heap setting"

/* clang-format off */
static void tools_are_found_by_what_they_are(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"npm ci", 0, 800, "npm install"},
		{"npm i lodash", 0, 800, "npm install"},
		{"npm --prefix web ci", 0, 800, "npm install"},
		{"pnpm i", 0, 1000, "pnpm install"},
		{"pnpm -r --filter web add x", 0, 1000, "pnpm install"},
		{"yarn", 0, 1000, "yarn install"},
		{"yarn --frozen-lockfile", 0, 1000, "yarn install"},
		{"next build", 0, 2500, "next build"},
		{"next", 0, 1500, "dev server"},
		{"vite", 0, 1500, "dev server"},
		{"vite build", 0, 1200, "vite build"},
		{"rollup -c", 0, 1200, "vite build"},
		{"webpack --mode production", 0, 1500, "webpack"},
		{"node_modules/.bin/webpack", 0, 1500, "webpack"},
		{"tsc -p .", 0, 1000, "tsc"},
		{"eslint src/projects", 0, 700, "eslint"},
		{"eslint --parser-options project:./tsconfig.json .", 0, 4000, "eslint with types"},
		{"next lint", 0, 700, "eslint"},
		{"cypress run", 0, 3000, "cypress"},
		{"playwright screenshot x", 0, 750, "headless browser"},
		{"google-chrome-stable --headless", 0, 750, "headless browser"},
		{"cargo build", 0, 2000, "cargo"},
		{"cargo +nightly --color always test", 0, 2000, "cargo"},
		{"cargo build -p multools", 0, 2000, "cargo"},
		{"CARGO_PROFILE_RELEASE_LTO=false cargo build", 0, 2000, "cargo"},
		{"RUSTFLAGS='-C lto=fat' cargo build --release", 0, 8000, "cargo with link-time optimisation"},
		{"go test ./...", 0, 1500, "go build"},
		{"clang++-14 -c x.cc", 0, 850, "C or C++ file"},
		{"/usr/bin/ld -o x", 0, 2000, "C++ link"},
		{"./gradlew :app:assembleDebug", 0, 3500, "gradle"},
		{"./mvnw verify", 0, 1500, "mvn or sbt"},
		{"dotnet restore", 0, 2000, "dotnet build"},
		{"pip install flask", 0, 300, "pip install"},
		{"pip3.11 install tensorflow", 0, 2500, "pip install of large wheels"},
		{"python3 -m pip install torch", 0, 2500, "pip install of large wheels"},
		{"mypy .", 0, 1500, "mypy"},
		{"pyright", 0, 2500, "pyright"},
		{"docker build -t x .", 0, 2500, "image build"},
		{"docker buildx build --push .", 0, 2500, "image build"},
		{"docker compose -f x.yml build", 0, 2500, "image build"},
		{"composer require x/y", 0, 700, "composer"},
		{"bin/rails assets:precompile", 0, 1000, "Rails assets"},
		{"terraform -chdir=x plan", 0, 1000, "terraform"},
		{"stack build", 0, 2500, "Haskell build"},
		{"npx react-native bundle", 0, 3000, "React Native bundle"},
		{"npx astro build", 0, 1500, "static site"},
		{"claude -p x", 0, 700, "coding agent"},
		{"git clone https://x/y", 0, 500, "git clone"},
		{"git -C x clone y", 0, 500, "git clone"},
		{"tar xf x.tar", 0, 500, "archive, sort or media tool"},
	};
	CHECK(rows);
}

static void wrappers_are_taken_off(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"CI=1 NODE_ENV=production npx --yes next build", 0, 2500, "next build"},
		{"sudo -u www npm ci", 0, 800, "npm install"},
		{"sudo X=1 npm ci", 0, 800, "npm install"},
		{"time npm ci", 0, 800, "npm install"},
		{"nice -n 10 cargo build", 0, 2000, "cargo"},
		{"nice -19 cargo build", 0, 2000, "cargo"},
		{"env A=1 -u B next build", 0, 2500, "next build"},
		{"env A='1 2' next build", 0, 2500, "next build"},
		{"timeout 600 mypy x", 0, 1500, "mypy"},
		{"timeout -k 5 -s KILL 600 mypy x", 0, 1500, "mypy"},
		{"nohup cargo build", 0, 2000, "cargo"},
		{"exec cargo build", 0, 2000, "cargo"},
		{"ionice -c 3 nice time cargo build", 0, 2000, "cargo"},
		{"xvfb-run -a npx cypress run", 0, 3000, "cypress"},
		{"npx next@14 build", 0, 2500, "next build"},
		{"npx -p typescript tsc", 0, 1000, "tsc"},
		{"pnpm exec next build", 0, 2500, "next build"},
		{"pnpm dlx vite build", 0, 1200, "vite build"},
		{"yarn next build", 0, 2500, "next build"},
		{"yarn run eslint .", 0, 700, "eslint"},
		{"npm exec -- tsc", 0, 1000, "tsc"},
		{"bunx vite build", 0, 1200, "vite build"},
		{"uv run pytest", 0, 700, "pytest"},
		{"uv run --with x python -m pytest", 0, 700, "pytest"},
		{"poetry run mypy", 0, 1500, "mypy"},
		{"pipenv run pytest -q", 0, 700, "pytest"},
		{"python -m pytest", 0, 700, "pytest"},
		{"python3.12 -W error -m pytest", 0, 700, "pytest"},
		{"node --enable-source-maps node_modules/next/dist/bin/next build", 0, 2500, "next build"},
		{"node node_modules/typescript/bin/tsc.js", 0, 1000, "tsc"},
		{"bundle exec rake assets:precompile", 0, 1000, "Rails assets"},
		{"find . | xargs -n 1 eslint", 0, 750, "eslint"},
		{"bash -lc 'cd x && npm ci'", 0, 800, "npm install"},
		{"bash -c \"next build\"", 0, 2500, "next build"},
		{"sh -ec 'cargo build'", 0, 2000, "cargo"},
		{"bash -euo pipefail -c 'cargo build | tee x'", 0, 2050, "cargo"},
		{"sudo bash -c \"sh -c 'cargo build'\"", 0, 2000, "cargo"},
		{"su - www -c 'npm ci'", 0, 800, "npm install"},
		{"eval 'npm ci'", 0, 800, "npm install"},
		{"docker run --rm -v $PWD:/w -w /w node:20 npm ci", 0, 800, "npm install"},
		{"docker exec -it web npm ci", 0, 800, "npm install"},
		{"docker compose run --rm web pytest", 0, 700, "pytest"},
		{"docker run --rm x", 0, 500, UNKNOWN},
		{"if [ -f x ]; then npm ci; fi", 0, 800, "npm install"},
		{"for f in *.c; do gcc -c $f; done", 0, 850, "C or C++ file"},
		{"! tsc", 0, 1000, "tsc"},
		{"(cd x; { npm ci; })", 0, 800, "npm install"},
		{"while true; do mypy; done", 0, 1500, "mypy"},
		{"npx", 0, 500, UNKNOWN},
	};
	CHECK(rows);
}

static void the_largest_part_counts_and_what_runs_together_is_summed(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"cd web && npm ci && npm run build", 0, 2000, "build script"},
		{"npm ci; next build; ls", 0, 2500, "next build"},
		{"npm ci || next build", 0, 2500, "next build"},
		{"npm ci\nnext build\n", 0, 2500, "next build"},
		{"npm ci\r\nnext build\r\n", 0, 2500, "next build"},
		{"ls | grep x", 0, 100, LIGHT},
		{"cargo build 2>&1 | tee log", 0, 2050, "cargo"},
		{"cargo build |& tail -n 20", 0, 2050, "cargo"},
		{"next dev & cypress run", 0, 4500, "cypress"},
		{"npm ci && next dev & cypress run; ls", 0, 4500, "cypress"},
		{"mypy | mypy | mypy", 0, 4500, "mypy"},
		{"cat > x <<EOF\nnext build\nEOF\nmypy", 0, 1500, "mypy"},
		{"echo 'next build'", 0, 50, LIGHT},
		{"echo $(next build)", 0, 50, LIGHT},
		{"# next build\nls", 0, 50, LIGHT},
		{"grep -- --max-old-space-size=9000 x", 0, 50, LIGHT},
		{"git commit -m 'cargo build -Xmx9g'", 0, 50, LIGHT},
	};
	CHECK(rows);
}

static void workers_are_read_where_they_stand(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"make", 8, 1500, "make"},
		{"make -j16", 0, 9000, "make"},
		{"make -j 16 all", 0, 9000, "make"},
		{"make --jobs=2", 0, 2000, "make"},
		{"make --jobs 2", 0, 2000, "make"},
		{"make -j", 0, 3000, "make"},
		{"make -j", 8, 5000, "make"},
		{"make -j$(nproc)", 6, 4000, "make"},
		{"make -j \"$(nproc)\"", 6, 4000, "make"},
		{"make -j all", 2, 2000, "make"},
		{"make -j0", 2, 1500, "make"},
		{"make -C sub -j3", 0, 2500, "make"},
		{"make -j999999999999", 0, 513000, "make"},
		{"make -j99999999999999999999999999999999", 0, 513000, "make"},
		{"make -j-5", 0, 1500, "make"},
		{"ninja", 0, 3000, "ninja"},
		{"ninja", 2, 2000, "ninja"},
		{"ninja -j0", 2, 2000, "ninja"},
		{"ninja", 2000000000, 513000, "ninja"},
		{"ninja", -5, 3000, "ninja"},
		{"cmake --build build --parallel 8", 0, 5000, "ninja"},
		{"cmake --build build -- -j8", 0, 5000, "ninja"},
		{"jest", 0, 2400, "jest"},
		{"jest", 8, 4400, "jest"},
		{"jest --maxWorkers=2", 8, 1400, "jest"},
		{"jest --maxWorkers 2", 8, 1400, "jest"},
		{"jest -w 3", 8, 1900, "jest"},
		{"jest --maxWorkers=50%", 8, 2400, "jest"},
		{"jest --maxWorkers=1%", 8, 900, "jest"},
		{"jest --maxWorkers=99999999999%", 8, 4400, "jest"},
		{"jest --runInBand", 8, 900, "jest, one worker"},
		{"vitest run --max-workers=2", 8, 1400, "vitest"},
		{"playwright test", 0, 3000, "playwright test"},
		{"npx playwright test --workers 1", 8, 750, "playwright test"},
		{"pytest", 8, 700, "pytest"},
		{"pytest -n 4", 0, 3600, "pytest"},
		{"pytest -n4", 0, 3600, "pytest"},
		{"pytest -n auto", 2, 2000, "pytest"},
		{"pytest -nauto", 2, 2000, "pytest"},
		{"pytest -n 0", 8, 700, "pytest"},
		{"pytest --numprocesses=2", 0, 2000, "pytest"},
		{"cargo build -j 4", 0, 2000, "cargo"},
		{"npm test -- --maxWorkers=2", 8, 1400, "test script"},
	};
	CHECK(rows);
}

static void settings_in_the_text_beat_the_table(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"NODE_OPTIONS=--max-old-space-size=4096 next build", 0, 4396, NODE},
		{"NODE_OPTIONS='--x --max-old-space-size=512' next build", 0, 812, NODE},
		{"node --max_old_space_size=2048 x.js", 0, 2348, NODE},
		{"export NODE_OPTIONS=--max-old-space-size=8192 && next build", 0, 8492, NODE},
		{"export NODE_OPTIONS=--max-old-space-size=512 && next build", 0, 2500, "next build"},
		{"NODE_OPTIONS=--max-old-space-size=512 jest --maxWorkers=8", 0, 4400, "jest"},
		{"NODE_OPTIONS=--max-old-space-size=512 bash -c 'cargo build'", 0, 2000, "cargo"},
		{"NODE_OPTIONS=--max-old-space-size=8192 bash -c 'next build'", 0, 8492, NODE},
		{"bash -c 'NODE_OPTIONS=--max-old-space-size=8192 next build'", 0, 8492, NODE},
		{"java -Xmx2g -jar x.jar", 0, 2963, JVM},
		{"java -Xmx512m -jar x.jar", 0, 966, JVM},
		{"java -Xmx1048576k -jar x.jar", 0, 1632, JVM},
		{"java -Xmx1073741824 -jar x.jar", 0, 1632, JVM},
		{"GRADLE_OPTS='-Xms1g -Xmx4g' ./gradlew build", 0, 5625, JVM},
		{"./gradlew build -Dorg.gradle.jvmargs=-Xmx4g", 0, 5625, JVM},
		{"./run.sh -Xmx4g", 0, 5625, JVM},
		{"docker run -m 4g x npm ci", 0, 4096, LIMIT},
		{"docker run --memory=512m x next build", 0, 512, LIMIT},
		{"docker run --memory 2G x", 0, 2048, LIMIT},
		{"docker run -m=1g x ls", 0, 1024, LIMIT},
		{"podman run -m2g x npm ci", 0, 2048, LIMIT},
		{"docker run -m 1073741824 x npm ci", 0, 1024, LIMIT},
		{"docker build -m 1g .", 0, 2500, "image build"},
		{"systemd-run --scope -p MemoryMax=2G cargo build", 0, 2048, LIMIT},
		{"systemd-run --property=MemoryMax=3G cargo build", 0, 3072, LIMIT},
		{"systemd-run -pMemoryMax=1536M cargo build", 0, 1536, LIMIT},
		{"systemd-run -p MemoryMax=50% cargo build", 0, 2000, "cargo"},
		{"systemd-run -p MemoryMax=infinity cargo build", 0, 2000, "cargo"},
		/* no memory sizes: the text says nothing */
		{"java -Xmx99999g -jar x", 0, 1000, "Java program"},
		{"java -Xmx99999999999999999999999g -jar x", 0, 1000, "Java program"},
		{"java -Xmx -jar x", 0, 1000, "Java program"},
		{"java -Xmx0 -jar x", 0, 1000, "Java program"},
		{"java -Xmx-5g -jar x", 0, 1000, "Java program"},
		{"NODE_OPTIONS=--max-old-space-size=99999999999 next build", 0, 2500, "next build"},
		{"NODE_OPTIONS=--max-old-space-size= next build", 0, 2500, "next build"},
		{"docker run -m", 0, 500, UNKNOWN},
		{"docker run -m lots x npm ci", 0, 800, "npm install"},
	};
	CHECK(rows);
}

static void hidden_tools_are_guessed_and_said_to_be(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"npm run build", 0, 2000, "build script"},
		{"npm run build:prod", 0, 2000, "build script"},
		{"npm run -w web build", 0, 2000, "build script"},
		{"yarn build", 0, 2000, "build script"},
		{"yarn workspace web build", 0, 2000, "build script"},
		{"pnpm -r run build", 0, 2000, "build script"},
		{"bun run build", 0, 2000, "build script"},
		{"npm test", 0, 1000, "test script"},
		{"npm t", 0, 1000, "test script"},
		{"npm run test:unit", 0, 1000, "test script"},
		{"pnpm test", 0, 1000, "test script"},
		{"make test", 0, 1000, "make test"},
		{"make check", 0, 1000, "make test"},
		{"make -j4 test", 0, 3000, "make test"},
		{"npm run lint", 0, 700, "lint script"},
		{"npm run dev", 0, 1500, "dev server script"},
		{"npm start", 0, 1500, "dev server script"},
	};
	CHECK(rows);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct need need;
		need_from_table(rows[i].job, 0, &need);
		assert_int_equal(need.basis, NEED_GUESS);
	}
}

static void light_and_unknown_commands_have_fixed_figures(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"ls -la", 0, 50, LIGHT},
		{"git status", 0, 50, LIGHT},
		{"git --no-pager log", 0, 50, LIGHT},
		{"curl -sS x", 0, 50, LIGHT},
		{"A=1", 0, 50, LIGHT},
		{"export A=1", 0, 50, LIGHT},
		{"npm --version", 0, 50, LIGHT},
		{"command -v npm", 0, 50, LIGHT},
		{"[ -f x ] && echo y", 0, 50, LIGHT},
		{"", 0, 500, UNKNOWN},
		{"   ", 0, 500, UNKNOWN},
		{"# nothing", 0, 500, UNKNOWN},
		{"frobnicate", 0, 500, UNKNOWN},
		{"./build.sh", 0, 500, UNKNOWN},
		{"bash build.sh", 0, 500, UNKNOWN},
		{"python script.py", 0, 500, UNKNOWN},
		{"node server.js", 0, 500, UNKNOWN},
		{"npm run frobnicate", 0, 500, UNKNOWN},
		{"npm", 0, 500, UNKNOWN},
		{"nextbuild", 0, 500, UNKNOWN},
		{"Next Build", 0, 500, UNKNOWN},
		{"$CMD", 0, 500, UNKNOWN},
	};
	CHECK(rows);
}

static void broken_texts_get_an_answer(void **state)
{
	(void)state;
	static const struct case_row rows[] = {
		{"npm ci 'never closed", 0, 800, "npm install"},
		{"bash -c 'next build", 0, 2500, "next build"},
		{"\"next build", 0, 500, UNKNOWN},
		{"$(next build", 0, 500, UNKNOWN},
		{"next build \\", 0, 2500, "next build"},
		{"next build >", 0, 2500, "next build"},
		{"next build <<", 0, 2500, "next build"},
		{"next build 2>&", 0, 2500, "next build"},
		{"&& next build", 0, 2500, "next build"},
		{"| | ; next build ;;", 0, 2500, "next build"},
		{"\xff\xfe\xc0 \x80 next build", 0, 500, UNKNOWN},
		{"\xff; next build", 0, 2500, "next build"},
		{"next build \xf0\x9f\x92\xa9", 0, 2500, "next build"},
		{"\x01\x02\x03\x7f", 0, 500, UNKNOWN},
		{"sudo", 0, 500, UNKNOWN},
		{"sudo -u", 0, 500, UNKNOWN},
		{"timeout", 0, 500, UNKNOWN},
		{"bash -c", 0, 500, UNKNOWN},
		{"docker run", 0, 500, UNKNOWN},
		{"'' npm ci", 0, 500, UNKNOWN},
		{"/", 0, 500, UNKNOWN},
		{"@", 0, 500, UNKNOWN},
		{"-", 0, 500, UNKNOWN},
		{"sh -c \"sh -c \\\"sh -c 'sh -c ls'\\\"\"", 0, 500, UNKNOWN},
		{"bash -c ''", 0, 500, UNKNOWN},
	};
	CHECK(rows);
}
/* clang-format on */

/* A text of n bytes that repeats a piece. */
static char *repeated(const char *piece, size_t n)
{
	size_t len = strlen(piece);
	char *text = malloc(n + 1);
	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		text[i] = piece[i % len];
	text[n] = 0;
	return text;
}

static void long_texts_get_an_answer_within_bounds(void **state)
{
	(void)state;
	static const char *const pieces[] = {"a", "a ", "a;", "mypy|", "sudo ", "npx -p ", "$(",
		"${", "`", "\"", "'", "\\", "<<E\n", "sh -c '", "sh -c x;", "npm -a ", "bun x ",
		"A=1 ", "(", "-Xmx1g", "make -j9 ", "\xc3\xbc", "bash -c \"", ">",
		"docker run -m 9g x;"};
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		static const size_t sizes[] = {16000, NEED_TEXT_MAX, NEED_TEXT_MAX + 1000};
		for (size_t k = 0; k < 3; k++) {
			char *text = repeated(pieces[i], sizes[k]);
			struct need need;
			need_from_table(text, 8, &need);
			assert_true(need.mb >= 50 && need.mb <= MEMORY_MB_MAX);
			assert_non_null(need.kind);
			free(text);
		}
	}
}

static void the_sum_of_many_parts_stays_a_memory_size(void **state)
{
	(void)state;
	char *text = repeated("make -j9999|", 12 * 100);
	struct need need;
	need_from_table(text, 0, &need);
	assert_int_equal(need.mb, 64125000); /* 100 x 641 250 */
	assert_true(need.summed);
	free(text);
	text = repeated("make -j9999|", 12 * 300);
	need_from_table(text, 0, &need);
	assert_int_equal(need.mb, MEMORY_MB_MAX);
	free(text);
}

static void the_percentile_is_the_nearest_rank_of_the_positive_peaks(void **state)
{
	(void)state;
	static const struct {
		size_t n;
		int64_t peaks[20], p90;
	} rows[] = {
		{0, {0}, 0},
		{3, {0, -1, INT64_MIN}, 0},
		{1, {700}, 700},
		{2, {700, 300}, 700},
		{3, {100, 300, 200}, 300},
		{4, {100, -1, 300, 200}, 300},
		{10, {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 9},
		{11, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 10},
		{20, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 18},
		{5, {5, 5, 5, 5, 5}, 5},
		{10, {1, 1, 1, 1, 1, 1, 1, 1, 1, 9000}, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(need_p90(rows[i].peaks, rows[i].n), rows[i].p90);
	assert_int_equal(need_p90(NULL, 0), 0);
}

static void a_run_that_was_killed_for_memory_counts_twice(void **state)
{
	(void)state;
	assert_int_equal(need_peak_counted(1000, false), 1000);
	assert_int_equal(need_peak_counted(1000, true), 2000);
	assert_int_equal(need_peak_counted(-1, true), -1);
	assert_int_equal(need_peak_counted(0, true), 0);
	assert_int_equal(need_peak_counted(MEMORY_MB_MAX, true), MEMORY_MB_MAX);
	assert_int_equal(need_peak_counted(INT64_MAX, true), MEMORY_MB_MAX);
}

#define NONE ABSENT_NUM
static struct memory_seen seen(double free_mb, double total_mb, double job_mb, double floor_mb)
{
	return (struct memory_seen){free_mb, total_mb, job_mb, floor_mb};
}

static void impossible_figures_are_refused_with_field_and_unit(void **state)
{
	(void)state;
	const double inf = (double)INFINITY, much = MEMORY_MB_MAX + 1.0;
	const struct {
		struct memory_seen in;
		const char *field, *says;
	} rows[] = {
		{seen(NONE, NONE, NONE, NONE), "free_mb", "missing"},
		{seen(-1, NONE, NONE, NONE), "free_mb", "negative; the unit is MB"},
		{seen(-0.5, NONE, NONE, NONE), "free_mb", "negative"},
		{seen(inf, NONE, NONE, NONE), "free_mb", "finite number of MB"},
		{seen(-inf, NONE, NONE, NONE), "free_mb", "finite"},
		{seen(much, NONE, NONE, NONE), "free_mb", "67108864 MB (64 TB); the unit is MB"},
		{seen(8053063680, NONE, NONE, NONE), "free_mb", "not bytes"},
		{seen(100, -1, NONE, NONE), "total_mb", "negative"},
		{seen(100, inf, NONE, NONE), "total_mb", "finite"},
		{seen(100, -inf, NONE, NONE), "total_mb", "finite"},
		{seen(100, much, NONE, NONE), "total_mb", "64 TB"},
		{seen(100, 8796093022206, NONE, NONE), "total_mb", "64 TB"},
		{seen(0, 0, NONE, NONE), "total_mb", "above 0; the unit is MB"},
		{seen(101, 100, NONE, NONE), "free_mb",
			"larger than total_mb; the unit of both is MB"},
		{seen(100, 200, -1, NONE), "job_mb", "negative"},
		{seen(100, 200, inf, NONE), "job_mb", "finite"},
		{seen(100, 200, much, NONE), "job_mb", "64 TB"},
		{seen(100, 200, NONE, -1), "floor_mb", "negative"},
		{seen(100, 200, NONE, inf), "floor_mb", "finite"},
		{seen(100, 200, NONE, much), "floor_mb", "64 TB"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(need_check_input(&rows[i].in), ERR_BAD_INPUT);
		const struct fault *f = fault_of(ERR_BAD_INPUT);
		if (strcmp(f->field, rows[i].field) != 0 || !strstr(f->detail, rows[i].says))
			fail_msg("row %zu: %s %s", i, f->field, f->detail);
	}
}

static void possible_figures_are_taken(void **state)
{
	(void)state;
	const struct memory_seen rows[] = {
		seen(0, NONE, NONE, NONE),
		seen(100, 100, 0, 0),
		seen(0.5, 1, 0.5, 0.5),
		seen(MEMORY_MB_MAX, MEMORY_MB_MAX, MEMORY_MB_MAX, MEMORY_MB_MAX),
		seen(100, NEED_NO_LIMIT_MB, NONE, NONE),
		seen(100, 17592186044415, NONE, NONE),
		seen(100, 1.8e19, NONE, NONE),
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(need_check_input(&rows[i]), OK);
}

static void the_caller_beats_history_and_history_beats_the_table(void **state)
{
	(void)state;
	static const int64_t peaks[] = {900, 0, 1100, -1, 1000};
	struct need_choice c;
	struct memory_seen in = seen(100, NONE, 250, NONE);
	need_choose(&in, peaks, 5, "next build", 0, &c);
	assert_int_equal(c.source, NEED_FROM_CALLER);
	assert_true(c.mb == 250);
	in.job_mb = NONE;
	need_choose(&in, peaks, 5, "next build", 0, &c);
	assert_int_equal(c.source, NEED_FROM_HISTORY);
	assert_int_equal(c.observations, 3);
	assert_true(c.mb == 1100);
	need_choose(&in, peaks, 4, "next build", 0, &c); /* two known peaks are too few */
	assert_int_equal(c.source, NEED_FROM_TABLE);
	assert_true(c.mb == 3125);
	need_choose(&in, NULL, 0, NULL, 0, &c);
	assert_int_equal(c.source, NEED_FROM_TABLE);
	assert_true(c.mb == 500);
	in.job_mb = 0; /* given, though nothing */
	need_choose(&in, peaks, 5, "next build", 0, &c);
	assert_int_equal(c.source, NEED_FROM_CALLER);
}

static void the_status_follows_the_arithmetic_at_its_borders(void **state)
{
	(void)state;
	const struct {
		struct memory_seen in;
		enum memory_status status;
		double floor_mb;
		bool offload;
	} rows[] = {
		{seen(1511, NONE, 1000, NONE), MEMORY_LOW, 512, true},
		{seen(1512, NONE, 1000, NONE), MEMORY_OK, 512, false},
		{seen(1000, NONE, 1000, NONE), MEMORY_LOW, 512, true},
		{seen(999.5, NONE, 1000, NONE), MEMORY_CRITICAL, 512, true},
		{seen(0, NONE, 0, NONE), MEMORY_LOW, 512, true},
		{seen(0, NONE, 0, 0), MEMORY_OK, 0, false},
		{seen(1000, NONE, 1000, 0), MEMORY_OK, 0, false},
		{seen(1000, 5120, 400, NONE), MEMORY_OK, 512, false},
		{seen(2600, 16000, 1000, NONE), MEMORY_OK, 1600, false},
		{seen(2599, 16000, 1000, NONE), MEMORY_LOW, 1600, true},
		{seen(1100, 16000, 1000, 100), MEMORY_OK, 100, false},
		{seen(1099, 16000, 1000, 100), MEMORY_LOW, 100, true},
		{seen(2000, 17592186044415, 1000, NONE), MEMORY_OK, 512, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
		struct need_choice c;
		struct verdict v;
		assert_int_equal(need_check_input(&rows[i].in), OK);
		need_choose(&rows[i].in, NULL, 0, NULL, 0, &c);
		need_judge(a, &rows[i].in, &c, &v);
		if (v.status != rows[i].status || v.floor_mb != rows[i].floor_mb ||
			v.offload != rows[i].offload)
			fail_msg("row %zu: %s", i, v.reason);
		assert_true(v.left_mb == rows[i].in.free_mb - v.need_mb);
		assert_true((v.warning == NULL) == (v.status == MEMORY_OK));
		assert_null(v.advice);
	}
}

#define UNRESERVED " Nothing was reserved: another job that asks now sees the same free memory."

static void the_reason_is_in_numbers_and_names_its_source(void **state)
{
	(void)state;
	static const int64_t peaks[] = {900, 1000, 1100, 1200};
	const struct {
		struct memory_seen in;
		const char *job;
		size_t peaks;
		const char *reason;
	} rows[] = {
		{seen(1200, 7953, NONE, NONE), "next build", 0,
			"Free: 1200 MB. Need: 3125 MB (table row \"next build\": 2500 MB + 625 MB "
			"margin). Floor: 795.3 MB (10 % of total_mb). 1925 MB are "
			"missing." UNRESERVED},
		{seen(1200, 4000, 600, NONE), "next build", 4,
			"Free: 1200 MB. Need: 600 MB (job_mb as given). Floor: 512 MB (512 MB at "
			"least). "
			"600 MB would be left, not below the floor." UNRESERVED},
		{seen(1300.5, NONE, NONE, 200), "next build", 4,
			"Free: 1300.5 MB. Need: 1200 MB (own history: 90th percentile of 4 "
			"observed peaks). "
			"Floor: 200 MB (floor_mb as given). 100.5 MB would be left, below the "
			"floor." UNRESERVED},
		{seen(9000, NONE, NONE, NONE), "make -j1", 0,
			"Free: 9000 MB. Need: 1875 MB (table row \"make\" with 1 worker: 1500 MB + "
			"375 MB margin). Floor: 512 MB (512 MB at least). 7125 MB would be left, "
			"not below "
			"the floor." UNRESERVED},
		{seen(9000, NONE, NONE, NONE), "npm run build | tee x", 0,
			"Free: 9000 MB. Need: 2550 MB (a guess, table row \"build script\", the "
			"largest of "
			"several parts that run together: 2050 MB + 500 MB margin). "
			"Floor: 512 MB "
			"(512 MB at least). 6450 MB would be left, not below the "
			"floor." UNRESERVED},
		{seen(9000, NONE, NONE, NONE), "java -Xmx2g x", 0,
			"Free: 9000 MB. Need: 2963 MB (JVM heap setting in the text of the job). "
			"Floor: 512 MB "
			"(512 MB at least). 6037 MB would be left, not below the "
			"floor." UNRESERVED},
		{seen(9000, NONE, NONE, NONE), "secretname --key=secret", 0,
			"Free: 9000 MB. Need: 500 MB (table row \"unknown command\": assumed, for "
			"no row fits). "
			"Floor: 512 MB (512 MB at least). 8500 MB would be left, not below the "
			"floor." UNRESERVED},
		{seen(20, NONE, NONE, NONE), "git status", 0,
			"Free: 20 MB. Need: 50 MB (table row \"light command\"). Floor: 512 MB "
			"(512 MB at "
			"least). 30 MB are missing. A command this light is not worth "
			"moving." UNRESERVED},
		{seen(900, 17592186044415, 100, NONE), "x", 0,
			"Free: 900 MB. Need: 100 MB (job_mb as given). Floor: 512 MB (512 MB at "
			"least). 800 MB "
			"would be left, not below the floor. total_mb is the sign for \"no "
			"limit\", no memory "
			"size, and was left out." UNRESERVED},
		{seen(7.5, 16, 1, NONE), "x", 0,
			"Free: 7.5 MB. Need: 1 MB (job_mb as given). Floor: 512 MB (512 MB at "
			"least). 6.5 MB "
			"would be left, below the floor. Is total_mb in GB? The unit is "
			"MB." UNRESERVED},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
		struct need_choice c;
		struct verdict v;
		need_choose(&rows[i].in, peaks, rows[i].peaks, rows[i].job, 0, &c);
		need_judge(a, &rows[i].in, &c, &v);
		assert_string_equal(v.reason, rows[i].reason);
	}
}

static void a_light_command_is_never_moved(void **state)
{
	(void)state;
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	struct memory_seen in = seen(10, 8000, NONE, NONE);
	struct need_choice c;
	struct verdict v;
	need_choose(&in, NULL, 0, "ls | grep x", 0, &c);
	need_judge(a, &in, &c, &v);
	assert_int_equal(v.status, MEMORY_CRITICAL);
	assert_false(v.offload);
	/* with a number of the caller's it is a job like others */
	in.job_mb = 50;
	need_choose(&in, NULL, 0, "ls", 0, &c);
	need_judge(a, &in, &c, &v);
	assert_true(v.offload);
}

static void an_offloaded_job_is_told_what_else_to_set(void **state)
{
	(void)state;
	static const struct {
		const char *job, *advice, *warning;
		double free_mb;
	} rows[] = {
		{"next build", "--max-old-space-size", "does not fit", 100},
		{"./gradlew build", "-Xmx", "does not fit", 100},
		{"ninja", "Workers multiply", "does not fit", 100},
		{"cargo build", NULL, "does not fit", 100},
		{"next build", "--max-old-space-size", "leaves less than the floor", 3200},
		{"next build", NULL, NULL, 9000},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
		struct memory_seen in = seen(rows[i].free_mb, NONE, NONE, NONE);
		struct need_choice c;
		struct verdict v;
		need_choose(&in, NULL, 0, rows[i].job, 0, &c);
		need_judge(a, &in, &c, &v);
		assert_true(
			rows[i].advice ? v.advice && strstr(v.advice, rows[i].advice) : !v.advice);
		assert_true(rows[i].warning ? v.warning && strstr(v.warning, rows[i].warning)
					    : !v.warning);
		if (v.warning)
			assert_non_null(strstr(v.warning,
				"it, or anything else on this machine, may be killed or freeze"));
	}
}

/* clang-format off */
static void signs_of_death_by_memory_are_read(void **state)
{
	(void)state;
	static const struct {
		int code;
		bool ours;
		int64_t kills;
		const char *err;
		enum oom_sign sign;
	} rows[] = {
		{0, false, 1, "", OOM_CERTAIN},
		{1, true, 2, "", OOM_CERTAIN},
		{-1, false, 1, "", OOM_CERTAIN},
		{137, false, 0, "", OOM_SUSPECTED},
		{137, false, -1, "", OOM_SUSPECTED},
		{137, true, -1, "", OOM_NONE},
		{137, true, 0, "Killed\n", OOM_NONE},
		{143, false, -1, "", OOM_SUSPECTED},
		{143, true, -1, "", OOM_NONE},
		{134, false, 0, "FATAL ERROR: JavaScript heap out of memory\n", OOM_HEAP},
		{134, false, 0, "assertion failed\n", OOM_NONE},
		{1, false, 0, "JavaScript heap out of memory\n", OOM_NONE},
		{1, false, 0, "g++: fatal error: Killed signal terminated program cc1plus", OOM_SUSPECTED},
		{1, false, 0, "collect2: fatal error: ld terminated with signal 9 [Killed]", OOM_SUSPECTED},
		{1, false, 0, "go build x: signal: killed", OOM_SUSPECTED},
		{101, false, 0, "(signal: 9, SIGKILL: kill)", OOM_SUSPECTED},
		{2, false, 0, "Caught fatal signal 9", OOM_SUSPECTED},
		{2, false, 0, "what(): std::bad_alloc", OOM_SUSPECTED},
		{1, false, 0, "MemoryError", OOM_SUSPECTED},
		{1, false, 0, "fork: Cannot allocate memory", OOM_SUSPECTED},
		{2, false, 0, "not enough memory to run compilation", OOM_SUSPECTED},
		{1, false, 0, "[gw0] node down: Not properly terminated", OOM_SUSPECTED},
		{1, true, 0, "MemoryError", OOM_NONE},
		{0, false, 0, "MemoryError", OOM_NONE},
		{0, false, 0, "Killed", OOM_NONE},
		{1, false, 0, "Killed", OOM_SUSPECTED},
		{1, false, 0, "x\n  Killed \r\n\n", OOM_SUSPECTED},
		{1, false, 0, "it was Killed", OOM_NONE},
		{1, false, 0, "Killed\nand then more\n", OOM_NONE},
		{1, false, 0, "Kille", OOM_NONE},
		{1, false, 0, " \n\n", OOM_NONE},
		{1, false, 0, "", OOM_NONE},
		{-1, false, -1, "Killed", OOM_NONE},
		{255, false, -1, "connection closed", OOM_NONE},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t n = strlen(rows[i].err);
		enum oom_sign sign = oom_read(rows[i].code, rows[i].ours, rows[i].kills, rows[i].err, n);
		if (sign != rows[i].sign)
			fail_msg("row %zu: %d", i, (int)sign);
		assert_int_equal(oom_signs(rows[i].code, rows[i].ours, rows[i].kills, rows[i].err, n),
			sign == OOM_SUSPECTED || sign == OOM_CERTAIN);
	}
}
/* clang-format on */

static void only_the_end_of_a_long_tail_is_read_and_any_bytes_may_stand_in_it(void **state)
{
	(void)state;
	static char tail[TAIL_BYTES_MAX];
	static const char sign[] = "heap out of memory";
	memcpy(tail + 100, sign, sizeof sign - 1);
	assert_int_equal(oom_read(134, false, 0, tail, sizeof tail), OOM_NONE);
	memcpy(tail + sizeof tail - 8192, sign, sizeof sign - 1);
	assert_int_equal(oom_read(134, false, 0, tail, sizeof tail), OOM_HEAP);
	assert_int_equal(oom_read(134, false, 0, NULL, 0), OOM_NONE);
	assert_int_equal(oom_read(1, false, 0, NULL, 0), OOM_NONE);
	memset(tail, 0xff, sizeof tail);
	assert_int_equal(oom_read(1, false, 0, tail, sizeof tail), OOM_NONE);
	memcpy(tail + sizeof tail - 7, "\nKilled", 7);
	assert_int_equal(oom_read(1, false, 0, tail, sizeof tail), OOM_SUSPECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_table_is_well_formed_and_matched_by_its_example),
		cmocka_unit_test(tools_are_found_by_what_they_are),
		cmocka_unit_test(wrappers_are_taken_off),
		cmocka_unit_test(the_largest_part_counts_and_what_runs_together_is_summed),
		cmocka_unit_test(workers_are_read_where_they_stand),
		cmocka_unit_test(settings_in_the_text_beat_the_table),
		cmocka_unit_test(hidden_tools_are_guessed_and_said_to_be),
		cmocka_unit_test(light_and_unknown_commands_have_fixed_figures),
		cmocka_unit_test(broken_texts_get_an_answer),
		cmocka_unit_test(long_texts_get_an_answer_within_bounds),
		cmocka_unit_test(the_sum_of_many_parts_stays_a_memory_size),
		cmocka_unit_test(the_percentile_is_the_nearest_rank_of_the_positive_peaks),
		cmocka_unit_test(a_run_that_was_killed_for_memory_counts_twice),
		cmocka_unit_test(impossible_figures_are_refused_with_field_and_unit),
		cmocka_unit_test(possible_figures_are_taken),
		cmocka_unit_test(the_caller_beats_history_and_history_beats_the_table),
		cmocka_unit_test(the_status_follows_the_arithmetic_at_its_borders),
		cmocka_unit_test(the_reason_is_in_numbers_and_names_its_source),
		cmocka_unit_test(a_light_command_is_never_moved),
		cmocka_unit_test(an_offloaded_job_is_told_what_else_to_set),
		cmocka_unit_test(signs_of_death_by_memory_are_read),
		cmocka_unit_test(only_the_end_of_a_long_tail_is_read_and_any_bytes_may_stand_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
