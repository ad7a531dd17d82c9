// The stateful Python of a sandbox: one process a context, a line of JSON in each direction.

import { randomUUID } from 'node:crypto';
import readline from 'node:readline';

const DRIVER = `
import contextlib, io, json, sys, traceback
wire, names = sys.stdout, {"__name__": "__main__"}
def say(**line):
    print(json.dumps(line), file=wire, flush=True)
class Out(io.TextIOBase):
    def __init__(self, kind):
        self.kind = kind
    def write(self, text):
        if text:
            say(type=self.kind, text=text)
        return len(text)
for line in sys.stdin:
    with contextlib.redirect_stdout(Out("stdout")), contextlib.redirect_stderr(Out("stderr")):
        try:
            exec(compile(json.loads(line)["code"], "<code>", "exec"), names)
        except BaseException as e:
            say(type="error", name=type(e).__name__, value=str(e), traceback=traceback.format_exc())
    say(type="control", text="completed")
`;

class Context {
	constructor(box, { id, cwd, language = 'python', envs = {} }) {
		this.told = { id, cwd: cwd ?? box.guest.home, language, active: true, createdAt: new Date().toISOString() };
		this.box = box;
		this.child = box.guest.spawn(['/usr/bin/python3', '-u', '-c', DRIVER], { cwd, env: envs, stdin: 'pipe' });
		this.child.stdin.on('error', () => {});
		readline.createInterface({ input: this.child.stdout }).on('line', (line) => this.hear?.(line));
		this.child.on('close', () => {
			this.told.active = false;
			this.hear?.(JSON.stringify({ type: 'control', text: 'interrupted' }));
		});
	}

	run(ws, { code, timeout }) {
		const timer = timeout > 0 && setTimeout(() => {
			this.hear = undefined;
			this.end();
			ws.close(4008, 'execution timeout');
		}, timeout * 1000);
		this.hear = (line) => {
			ws.send(line);
			if (JSON.parse(line).type !== 'control') return;
			clearTimeout(timer);
			this.hear = undefined;
			ws.close(1000);
		};
		this.child.stdin.write(`${JSON.stringify({ code })}\n`);
	}

	end() {
		this.box.contexts.delete(this.told.id);
		this.box.guest?.signal(this.child, 'SIGKILL', { group: true });
	}
}

export function interpret(ws, box) {
	ws.once('message', (data) => {
		const ask = JSON.parse(data);
		const id = ask.contextId ?? 'default';
		if (!box.contexts.has(id) && ask.contextId) return ws.close(1011, 'context not found');
		if (!box.contexts.has(id)) box.contexts.set(id, new Context(box, { id, envs: ask.envs }));
		return box.contexts.get(id).run(ws, ask);
	});
}

/** /process/interpreter/context...; rest is the path behind /process/interpreter. */
export function contexts(req, box, rest, fail) {
	const id = rest[1];
	if (req.method === 'GET') return { status: 200, body: { contexts: [...box.contexts.values()].map((c) => c.told) } };
	if (req.method === 'POST') {
		const context = new Context(box, { ...JSON.parse(req.body), id: randomUUID() });
		box.contexts.set(context.told.id, context);
		return { status: 200, body: context.told };
	}
	if (!box.contexts.has(id)) return fail(404, 'context not found', 'NOT_FOUND');
	box.contexts.get(id).end();
	return { status: 204, body: '' };
}
