// One provider's own SDK does the job of the benchmark: a sandbox, one file, one command with its output,
// the end of the sandbox. Prints { walls: [ms...], cpu_us, rss_kb } of so many jobs.
//
//   node sdk-job.mjs PROVIDER JOBS AT_ONCE       (BASE and CREDENTIAL in the environment)

const [provider, jobs, atOnce] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const { BASE } = process.env;
const credential = JSON.parse(process.env.CREDENTIAL);
const FILE = 'hello';
const COMMAND = 'cat input.txt; exit 3';

const doers = {
	async vercel() {
		const { Sandbox } = await import('@vercel/sandbox');
		const access = { token: credential.token, teamId: credential.team_id, projectId: credential.project_id,
			fetch: (url, { dispatcher, ...init }) => fetch(String(url).replace('https://vercel.com/api', BASE), init) };
		return async () => {
			const box = await Sandbox.create({ ...access, persistent: false, timeout: 120000 });
			await box.writeFiles([{ path: 'input.txt', content: Buffer.from(FILE) }]);
			const done = await box.runCommand({ cmd: 'sh', args: ['-c', COMMAND] });
			const out = await done.stdout();
			await box.delete();
			return [done.exitCode, out];
		};
	},
	async e2b() {
		const { Sandbox, CommandExitError } = await import('e2b');
		const opts = { apiKey: credential.token, apiUrl: BASE, sandboxUrl: BASE };
		return async () => {
			const box = await Sandbox.create('base', { ...opts, timeoutMs: 120000 });
			await box.files.write('input.txt', FILE);
			const done = await box.commands.run(COMMAND).catch((error) => {
				if (error instanceof CommandExitError) return error;
				throw error;
			});
			await box.kill();
			return [done.exitCode, done.stdout];
		};
	},
	async daytona() {
		const { Daytona } = await import('@daytonaio/sdk');
		const sdk = new Daytona({ apiKey: credential.token, apiUrl: BASE, target: 'us', useDeprecatedPolling: true });
		return async () => {
			const box = await sdk.create({ autoDeleteInterval: 0 });
			await box.fs.uploadFile(Buffer.from(FILE), '/tmp/input.txt');
			const done = await box.process.executeCommand(`cd /tmp && ${COMMAND}`);
			await box.delete();
			return [done.exitCode, done.result];
		};
	},
	async modal() {
		const [tokenId, tokenSecret] = credential.token.split(':');
		process.env.MODAL_SERVER_URL = BASE;
		process.env.GRPC_DEFAULT_SSL_ROOTS_FILE_PATH = process.env.NODE_EXTRA_CA_CERTS;
		const { ModalClient } = await import('modal');
		const client = new ModalClient({ tokenId, tokenSecret, logLevel: 'error' });
		// For a server on this machine it would speak clear text to the routers of sandboxes.
		client.profile.serverUrl = 'https://elsewhere.invalid';
		const app = await client.apps.fromName('bench', { createIfMissing: true });
		const image = client.images.fromRegistry('buildpack-deps:bookworm');
		return async () => {
			const box = await client.sandboxes.create(app, image, { timeoutMs: 120000 });
			await box.filesystem.writeText(FILE, '/tmp/input.txt');
			const child = await box.exec(['sh', '-c', COMMAND], { workdir: '/tmp' });
			await child.stdin.close();
			const [out, code] = await Promise.all([child.stdout.readText(), child.wait(), child.stderr.readText()]);
			await box.terminate();
			box.detach();
			return [code, out];
		};
	},
};

const once = await doers[provider]();
const timed = async () => {
	const began = performance.now();
	const [code, out] = await once();
	if (code !== 3 || out !== FILE) throw new Error(`exit code ${code}, output ${out}`);
	return performance.now() - began;
};

await timed(); // warm: the connection and the code are there
process.stdout.write('warm\n');
await new Promise((resolve) => process.stdin.once('data', resolve));
const before = process.cpuUsage();
const walls = [];
let left = jobs;
await Promise.all(Array.from({ length: atOnce }, async () => {
	while (left-- > 0) walls.push(await timed());
}));
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ walls, cpu_us: (user + system) / jobs, rss_kb: process.resourceUsage().maxRSS }));
process.exit(0);
