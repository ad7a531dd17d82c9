// Rules of trouble: which request is spoilt, how often, and how. Used by the proxy and by every
// simulator, so that a test says the same thing everywhere:
//
//   const rule = place.rule({ method: 'POST', path: /sandboxes$/ }, 'hold', { times: 1 });
//   const rule = simulator.rule({ op: 'create' }, 'cut');
//   await rule.seen;                        // the request is here and goes no further
//   rule.release();
//
// What a rule may do:
//   hold        keep the request until release(), then pass it on
//   hold-reply  pass it on, keep the reply until release()
//   drop        break the connection before the request is passed on
//   cut         pass it on, then break the connection instead of replying
//   cut-body    pass it on, then break the connection after { bytes } of the reply's body
//   garbage     pass it on, then answer 200 with something that is no whole JSON
//   replace     pass it on, then answer { status, headers, body } in place of the true reply
//   answer      do not pass it on; answer { status, headers, body }
// Further members: times (how often; for ever), skip (so many that fit pass first).

import { gate } from './wait.mjs';

class Rule {
	constructor(where, act, { times = Infinity, skip = 0, ...more }) {
		this.where = where;
		this.act = act;
		this.left = times;
		this.skip = skip; // so many that fit pass first
		this.count = 0;
		this.more = more;
		this.seenGate = gate();
		this.releaseGate = gate();
		this.seen = this.seenGate.promise;
	}

	release() {
		this.left = 0;
		this.releaseGate.open();
	}

	fits(req) {
		const { method, path, op, when } = this.where;
		const fits = (!method || method === req.method) && (!path || path.test(req.url)) && (!op || op === req.op)
			&& (!when || when(req));
		if (!fits || this.left <= 0) return false;
		this.skip -= 1;
		return this.skip < 0;
	}

	take() {
		this.left -= 1;
		this.count += 1;
		this.seenGate.open();
	}
}

/** The rules of one place. */
export class Rules {
	#rules = [];
	#underWay = new Set();

	/** { op, method, path, when: (req) => true }: what must fit; see the top of this file. */
	rule(where, act, more = {}) {
		const rule = new Rule(where, act, more);
		this.#rules.push(rule);
		return rule;
	}

	/** A request ({ op }) is under way until `served` is settled. */
	during(request, served) {
		this.#underWay.add(request);
		return served.finally(() => this.#underWay.delete(request));
	}

	/** A create that came and is not done with may still make a sandbox, whoever has given it up. */
	creating() {
		return [...this.#underWay].some(({ op }) => op === 'create');
	}

	/** Forgets all rules and lets go what they hold. */
	clear() {
		for (const rule of this.#rules) rule.release();
		this.#rules = [];
	}

	/** The rule that spoils this request ({ method, url, op }), or undefined. */
	take(req) {
		const rule = this.#rules.find((r) => r.fits(req));
		rule?.take();
		return rule;
	}
}
