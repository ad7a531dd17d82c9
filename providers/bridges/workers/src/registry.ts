// Which sandboxes there are and when each must end. One object for the whole account: it sees to it that a
// sandbox is destroyed at its end, whatever becomes of those who asked for it.
import { DurableObject } from "cloudflare:workers";
import { getSandbox, type Sandbox } from "@cloudflare/sandbox";

export interface Env {
	BRIDGE_TOKEN?: string;
	Sandbox: DurableObjectNamespace<Sandbox>;
	Registry: DurableObjectNamespace<Registry>;
}

export type Row = {
	id: string;
	state: "running" | "stopping" | "ended";
	created: number; // ms
	expires: number; // ms
	idle: number; // seconds without a call until the machine goes to sleep
	used: number; // 1: something ran there, so its spool must be there
	labels: string; // JSON
	env: string; // JSON
};

const AGAIN_MS = 30_000; // a destroy that failed is repeated
const LATE_MS = 120_000; // a call that was under way at a stop may have started a machine anew; ended once more
const PATIENCE_MS = 20_000; // after that a caller learns "stopping"

export class Registry extends DurableObject<Env> {
	#sql = this.ctx.storage.sql;
	#ending = new Map<string, Promise<boolean>>();

	constructor(ctx: DurableObjectState, env: Env) {
		super(ctx, env);
		this.#sql.exec(`CREATE TABLE IF NOT EXISTS box (id TEXT PRIMARY KEY, state TEXT, created INTEGER,
			expires INTEGER, idle INTEGER, used INTEGER, labels TEXT, env TEXT)`);
	}

	get(id: string): Row | null {
		return this.#sql.exec<Row>("SELECT * FROM box WHERE id = ? AND state <> 'ended'", id).toArray()[0] ?? null;
	}

	list(): Row[] {
		return this.#sql.exec<Row>("SELECT * FROM box WHERE state <> 'ended' ORDER BY created DESC LIMIT 1000").toArray();
	}

	/** Null: this id is just being stopped. */
	async add(id: string, ttl: number, idle: number, labels: string, env: string): Promise<{ row: Row; fresh: boolean } | null> {
		const old = this.get(id);
		if (old) return old.state === "running" ? { row: old, fresh: false } : null;
		const now = Date.now();
		this.#sql.exec("INSERT OR REPLACE INTO box VALUES (?, 'running', ?, ?, ?, 0, ?, ?)", id, now, now + ttl * 1000, idle, labels, env);
		await this.#alarmAt(now + ttl * 1000);
		return { row: this.get(id)!, fresh: true };
	}

	/**
	 * Notes that something ran in this sandbox. When it had been stopped meanwhile, the call started a new
	 * machine behind our back: that one is destroyed. False: so it was.
	 */
	async used(id: string, created: number): Promise<boolean> {
		this.#sql.exec("UPDATE box SET used = 1 WHERE id = ? AND created = ?", id, created);
		const row = this.get(id);
		if (row?.state !== "running") await this.#destroy(id);
		return row?.state === "running" && row.created === created;
	}

	/** True: it is gone for certain. False: it was not possible yet, and goes on by itself. */
	async stop(id: string): Promise<boolean> {
		if (!this.get(id)) return true;
		this.#sql.exec("UPDATE box SET state = 'stopping' WHERE id = ?", id);
		await this.#alarmAt(Date.now() + AGAIN_MS);
		let end = this.#ending.get(id);
		if (!end) {
			end = this.#end(id).finally(() => this.#ending.delete(id));
			this.#ending.set(id, end);
		}
		return Promise.race([end, scheduler.wait(PATIENCE_MS).then(() => false)]);
	}

	override async alarm(): Promise<void> {
		for (const row of this.list())
			if (row.state === "stopping" || row.expires <= Date.now()) await this.stop(row.id);
		for (const { id } of this.#sql.exec<Row>("SELECT * FROM box WHERE state = 'ended' AND expires <= ?", Date.now()).toArray()) {
			await this.#destroy(id).catch(() => {});
			this.#sql.exec("DELETE FROM box WHERE id = ? AND state = 'ended'", id);
		}
		const [next] = this.#sql.exec<{ at: number | null }>("SELECT min(expires) AS at FROM box WHERE state <> 'stopping'");
		if (next?.at) await this.#alarmAt(next.at);
	}

	async #end(id: string): Promise<boolean> {
		try {
			await this.#destroy(id);
		} catch {
			return false; // the alarm tries again
		}
		this.#sql.exec("UPDATE box SET state = 'ended', expires = ? WHERE id = ?", Date.now() + LATE_MS, id);
		await this.#alarmAt(Date.now() + LATE_MS);
		return true;
	}

	#destroy(id: string): Promise<void> {
		return getSandbox(this.env.Sandbox, id, { enableDefaultSession: false }).destroy();
	}

	/** Sets the alarm, unless it rings earlier anyway. */
	async #alarmAt(ms: number): Promise<void> {
		const at = await this.ctx.storage.getAlarm();
		if (at === null || at > ms || at <= Date.now()) await this.ctx.storage.setAlarm(Math.max(ms, Date.now() + 500));
	}
}
