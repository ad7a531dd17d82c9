// The Workers bridge in the real Workers runtime.
import { start } from '../simulators/workers/index.mjs';
import { contract } from './contract.mjs';

contract('workers', start, {
	provider: 'cloudflare',
	replaces: true, // the cloud may put a fresh machine in the place of a lost one
	refusals: (good) => [
		['an image', { ...good(), image: 'debian' }, 400, 'unsupported'],
		['no network', { ...good(), network: 'none' }, 400, 'unsupported'],
	],
});
