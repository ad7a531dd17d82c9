// The Modal bridge under Python.
import { start } from '../simulators/modal-bridge/index.mjs';
import { contract } from './contract.mjs';

contract('modal', start, {
	provider: 'modal',
	replaces: false,
	refusals: (good) => [
		['an image that is no text', { ...good(), image: 5 }],
		['memory as text', { ...good(), memory_mib: '512' }],
		['no memory at all', { ...good(), memory_mib: 0 }],
		['half a cpu', { ...good(), cpu: 0.5 }],
	],
});
