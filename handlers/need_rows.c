/*
 * The table of job kinds: data only.
 *
 * Figures are proposals for a project nobody has measured yet, from our own measurements and from
 * published reports (docs/memory.md); the peak of the whole process tree. Rows are tried from the
 * top, so the special stands before the general. Every row's example is run by the unit test.
 */
#include "need.h"

#include <stddef.h>

#define P(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define PM        "npm|yarn|pnpm|bun"
#define J_OPTS    "-j --jobs --parallel"
#define TEST_OPTS "--maxWorkers --max-workers --workers"

/* clang-format off */
const struct need_row need_rows[] = {
	/* JavaScript: bundlers and compilers */
	{.kind = "next build", .patterns = P("next build|export"), .mb = 2500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "CI=1 npx --yes next build"},
	{.kind = "storybook build", .patterns = P("build-storybook", "storybook build", PM " run build-storybook*", "yarn|pnpm build-storybook*"), .mb = 3000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npm run build-storybook"},
	{.kind = "ng build", .patterns = P("ng build|test|b"), .mb = 2500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npx ng build --configuration production"},
	{.kind = "vite build", .patterns = P("vite build", "rollup", "rolldown"), .mb = 1200, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "pnpm exec vite build"},
	{.kind = "dev server", .patterns = P("next dev|start|$", "vite dev|serve|preview|$", "webpack-dev-server", "webpack serve", "react-scripts start", "ng serve", "astro|nuxt|nuxi|storybook dev", "start-storybook"), .mb = 1500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "next dev -p 3000"},
	{.kind = "webpack", .patterns = P("webpack|webpack-cli|rspack", "react-scripts|craco|vue-cli-service|parcel build"), .mb = 1500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "react-scripts build"},
	{.kind = "React Native bundle", .patterns = P("react-native bundle|start|run-android|run-ios", "expo start|export|prebuild|run:android|run:ios", "metro", "eas build"), .mb = 3000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npx expo export"},
	{.kind = "static site", .patterns = P("astro|gatsby|docusaurus|nuxt|nuxi|vitepress build", "eleventy", "hexo|nuxt|nuxi generate"), .mb = 1500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "astro build"},
	{.kind = "tsc", .patterns = P("tsc|vue-tsc|tsgo|svelte-check|tsup"), .mb = 1000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npx tsc --noEmit"},
	{.kind = "eslint with types", .patterns = P("eslint"), .also = "project:|project=|tsconfig|type-aware|type-checked|typechecked", .mb = 4000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "eslint --parser-options=project:tsconfig.json src"},
	{.kind = "eslint", .patterns = P("eslint|eslint_d", "next lint"), .mb = 700, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "eslint ."},
	/* JavaScript: tests and browsers */
	{.kind = "jest, one worker", .patterns = P("jest", "react-scripts test"), .also = "--runInBand|--run-in-band", .mb = 900, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "jest --runInBand"},
	{.kind = "jest", .patterns = P("jest", "react-scripts test"), .mb = 400, .worker_mb = 500, .options = TEST_OPTS " -w", .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "yarn jest --maxWorkers=2"},
	{.kind = "vitest, one worker", .patterns = P("vitest"), .also = "--no-file-parallelism", .mb = 900, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "vitest run --no-file-parallelism"},
	{.kind = "vitest", .patterns = P("vitest"), .mb = 400, .worker_mb = 500, .options = TEST_OPTS, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "vitest run"},
	{.kind = "browser download", .patterns = P("playwright|puppeteer|cypress install"), .mb = 300, .basis = NEED_ROW, .example = "npx playwright install chromium"},
	{.kind = "playwright test", .patterns = P("playwright test"), .worker_mb = 750, .options = "--workers -j", .basis = NEED_ROW, .example = "npx playwright test --workers=2"},
	{.kind = "headless browser", .patterns = P("playwright|puppeteer|chromium*|google-chrome*|chrome|chrome-headless-shell|headless_shell|lighthouse|firefox"), .mb = 750, .basis = NEED_ROW, .example = "chromium --headless --screenshot https://example.org"},
	{.kind = "cypress", .patterns = P("cypress run|open"), .mb = 3000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npx cypress run"},
	/* JavaScript: package managers and scripts */
	{.kind = "npm install", .patterns = P("npm ci|install|i|add|update"), .mb = 800, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "npm ci"},
	{.kind = "pnpm install", .patterns = P("pnpm install|i|add|update|up"), .mb = 1000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "pnpm install --frozen-lockfile"},
	{.kind = "yarn install", .patterns = P("yarn install|add|up|upgrade|$"), .mb = 1000, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "yarn --immutable"},
	{.kind = "bun install", .patterns = P("bun install|i|add|update"), .mb = 500, .basis = NEED_ROW, .example = "bun install"},
	{.kind = "type check script", .patterns = P(PM " run|run-script typecheck*|type-check*|types*|tsc*|check-types*", "yarn|pnpm typecheck*|type-check*"), .mb = 1000, .runtime = RUNTIME_NODE, .basis = NEED_GUESS, .example = "npm run typecheck"},
	{.kind = "lint script", .patterns = P(PM " run|run-script lint*", "yarn|pnpm lint*"), .mb = 700, .runtime = RUNTIME_NODE, .basis = NEED_GUESS, .example = "npm run lint"},
	{.kind = "build script", .patterns = P(PM " run|run-script build*", "yarn|pnpm|bun build*", "yarn workspace * build*", "turbo|nx|lerna run build*", "turbo|nx build*", "make build"), .mb = 2000, .runtime = RUNTIME_NODE, .basis = NEED_GUESS, .example = "cd web && npm run build:prod"},
	{.kind = "dev server script", .patterns = P(PM " run|run-script dev*|start*|serve*|storybook*", PM " start|dev"), .mb = 1500, .runtime = RUNTIME_NODE, .basis = NEED_GUESS, .example = "npm start"},
	{.kind = "test script", .patterns = P(PM " run|run-script test*|e2e*|coverage*", "npm test|t|tst", "yarn|pnpm|bun test*", "yarn workspace * test*", "turbo|nx|lerna run test*", "turbo|nx test*"), .mb = 400, .worker_mb = 500, .serial_mb = 1000, .options = TEST_OPTS, .runtime = RUNTIME_NODE, .basis = NEED_GUESS, .example = "npm test"},
	/* Rust, Go, C and C++, Haskell, Swift */
	{.kind = "cargo with link-time optimisation", .patterns = P("cargo|cross build|b|test|t|install|run|r|bench|rustc", "rustc"), .also = "lto=fat|lto=true|lto=thin|lto=yes|lto=on|-Clto", .mb = 8000, .basis = NEED_ROW, .example = "CARGO_PROFILE_RELEASE_LTO=fat cargo build --release"},
	{.kind = "cargo", .patterns = P("cargo|cross build|b|test|t|install|run|r|check|c|clippy|bench|doc|rustc|nextest|tauri", "rustc", "wasm-pack build|test", "maturin build|develop", "trunk build"), .mb = 2000, .basis = NEED_ROW, .example = "cargo +nightly build --release"},
	{.kind = "go build", .patterns = P("go build|test|install|vet|run|generate", "golangci-lint", "goreleaser"), .mb = 1500, .basis = NEED_ROW, .example = "CGO_ENABLED=0 go build ./..."},
	{.kind = "make test", .patterns = P("make|gmake test*|check*"), .mb = 1000, .worker_mb = 500, .serial_mb = 1000, .options = J_OPTS, .basis = NEED_GUESS, .example = "make test"},
	{.kind = "make", .patterns = P("make|gmake"), .mb = 1000, .worker_mb = 500, .serial_mb = 1500, .options = J_OPTS, .basis = NEED_ROW, .example = "make -j16"},
	{.kind = "ninja", .patterns = P("ninja|samu", "cmake --build", "meson compile", "scons"), .mb = 1000, .worker_mb = 500, .options = J_OPTS, .basis = NEED_ROW, .example = "cmake --build build -j 8"},
	{.kind = "bazel", .patterns = P("bazel|bazelisk|buck2|pants build|test|run"), .mb = 1500, .worker_mb = 500, .options = J_OPTS, .runtime = RUNTIME_JVM, .basis = NEED_ROW, .example = "bazel build //..."},
	{.kind = "C++ link", .patterns = P("ld|ld.lld|lld|mold|ld.gold|gold|wasm-ld"), .mb = 2000, .basis = NEED_ROW, .example = "ld.lld -o app a.o b.o"},
	{.kind = "C or C++ file", .patterns = P("gcc|gcc-1*|g++|g++-1*|cc|c++|clang|clang-1*|clang++|clang++-1*|emcc|em++|nvcc"), .mb = 850, .basis = NEED_ROW, .example = "g++ -O2 -c big.cc"},
	{.kind = "Haskell build", .patterns = P("stack build|test|install", "cabal build|test|install|new-build|v2-build", "ghc"), .mb = 2500, .basis = NEED_ROW, .example = "stack build"},
	{.kind = "Swift build", .patterns = P("swift build|test|run", "xcodebuild"), .mb = 2500, .basis = NEED_ROW, .example = "swift build -c release"},
	/* JVM, .NET, mobile */
	{.kind = "gradle", .patterns = P("gradle|gradlew|gradlew.bat"), .mb = 3500, .runtime = RUNTIME_JVM, .basis = NEED_ROW, .example = "./gradlew assembleRelease"},
	{.kind = "mvn or sbt", .patterns = P("mvn|mvnw|mvnd|sbt|mill|ant|lein"), .mb = 1500, .runtime = RUNTIME_JVM, .basis = NEED_ROW, .example = "mvn -q verify"},
	{.kind = "Java program", .patterns = P("java|javac|kotlinc|scala|scalac"), .mb = 1000, .runtime = RUNTIME_JVM, .basis = NEED_ROW, .example = "java -jar app.jar"},
	{.kind = "flutter build", .patterns = P("flutter build|test|run"), .mb = 3500, .runtime = RUNTIME_JVM, .basis = NEED_ROW, .example = "flutter build apk"},
	{.kind = "dotnet build", .patterns = P("dotnet build|restore|publish|test|run|pack|msbuild", "msbuild"), .mb = 2000, .basis = NEED_ROW, .example = "dotnet publish -c Release"},
	/* Python */
	{.kind = "pytest", .patterns = P("pytest|py.test"), .mb = 400, .worker_mb = 800, .serial_mb = 700, .options = "-n --numprocesses", .basis = NEED_ROW, .example = "python3 -m pytest -n 4 tests"},
	{.kind = "Python test run", .patterns = P("tox|nox", "manage.py test", "unittest"), .mb = 700, .basis = NEED_ROW, .example = "python manage.py test"},
	{.kind = "pip install of large wheels", .patterns = P("pip|pip3* install|download|wheel", "uv pip install|sync", "uv add|sync", "poetry add|install|update", "pipenv install", "conda|mamba install|create"), .also = "torch|tensorflow|cuda|nvidia|jaxlib|jax[|vllm", .mb = 2500, .basis = NEED_ROW, .example = "pip install torch torchvision"},
	{.kind = "pip install", .patterns = P("pip|pip3* install|download|wheel", "uv pip install|sync", "uv add|sync", "poetry add|install|update", "pipenv|pipx install"), .mb = 300, .basis = NEED_ROW, .example = "uv pip install -r requirements.txt"},
	{.kind = "conda install", .patterns = P("conda|mamba install|create|update|env"), .mb = 1000, .basis = NEED_ROW, .example = "conda install numpy"},
	{.kind = "mypy", .patterns = P("mypy|dmypy"), .mb = 1500, .basis = NEED_ROW, .example = "uv run mypy src"},
	{.kind = "pyright", .patterns = P("pyright|basedpyright"), .mb = 2500, .runtime = RUNTIME_NODE, .basis = NEED_ROW, .example = "pyright"},
	/* Ruby, PHP, infrastructure, images */
	{.kind = "Rails assets", .patterns = P("rails|rake assets:precompile"), .mb = 1000, .basis = NEED_ROW, .example = "bundle exec rails assets:precompile"},
	{.kind = "Ruby test run", .patterns = P("rspec", "rails|rake test|spec"), .mb = 700, .basis = NEED_ROW, .example = "bundle exec rspec"},
	{.kind = "bundle install", .patterns = P("bundle install|update|$", "gem install"), .mb = 500, .basis = NEED_ROW, .example = "bundle install"},
	{.kind = "composer", .patterns = P("composer|composer.phar update|require|install|create-project"), .mb = 700, .basis = NEED_ROW, .example = "composer update"},
	{.kind = "terraform", .patterns = P("terraform|tofu|terragrunt plan|apply|destroy|refresh", "pulumi up|preview"), .mb = 1000, .basis = NEED_ROW, .example = "terraform plan -out plan"},
	{.kind = "image build", .patterns = P("docker|podman|nerdctl build", "docker|podman image|builder build", "docker buildx build|bake", "docker|podman compose build", "docker-compose|podman-compose build", "buildah bud|build"), .mb = 2500, .basis = NEED_GUESS, .example = "docker compose build web"},
	{.kind = "system packages", .patterns = P("apt|apt-get|dnf|yum|apk|brew install|add|update|upgrade"), .mb = 300, .basis = NEED_ROW, .example = "sudo apt-get install -y jq"},
	/* the rest */
	{.kind = "coding agent", .patterns = P("claude|codex|gemini|aider|opencode|goose"), .mb = 700, .basis = NEED_ROW, .example = "claude -p 'fix it'"},
	{.kind = "git clone", .patterns = P("git clone|fetch|pull|gc|repack|lfs"), .mb = 500, .basis = NEED_ROW, .example = "git clone https://example.org/big.git"},
	{.kind = "archive, sort or media tool", .patterns = P("tar|zip|unzip|7z|xz|zstd|gzip|sort|ffmpeg|convert|magick"), .mb = 500, .basis = NEED_ROW, .example = "tar xf big.tar.xz"},
	{.kind = "light command", .patterns = P(
		"ls|cat|cd|echo|printf|pwd|mkdir|rmdir|rm|cp|mv|ln|touch|true|false|test|[|[[|:|head|tail|tee|less|wc|grep|egrep|fgrep|rg|find|fd|sed|awk|cut|tr|uniq|comm|diff|cmp",
		"command -v",
		"which|whoami|id|date|sleep|uname|hostname|chmod|chown|stat|du|df|ps|kill|free|nproc|basename|dirname|realpath|readlink|jq|curl|wget|ping|ssh|scp|dig",
		"set|unset|trap|wait|read|exit|return|umask|ulimit|pushd|popd|for|case|fi|done|esac|}|break|continue|type|hash|printenv|seq|yes|md5sum|sha256sum",
		"git status|log|diff|show|add|commit|branch|checkout|switch|push|tag|stash|remote|config|rev-parse|init|restore|reset|rm|mv|blame|ls-files"),
		.mb = 50, .basis = NEED_LIGHT, .example = "git status"},
	{.kind = NULL},
};
/* clang-format on */
