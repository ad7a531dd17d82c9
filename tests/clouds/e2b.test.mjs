// The conformance list on E2B, simulated (lib/instance.mjs is used).

import { conform } from './conformance.mjs';

await conform('e2b');
