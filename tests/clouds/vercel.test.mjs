// The conformance list on vercel, simulated (lib/instance.mjs is used).

import { conform } from './conformance.mjs';

await conform('vercel');
