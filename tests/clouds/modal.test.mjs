// The conformance list on modal, simulated (lib/instance.mjs is used).

import { conform } from './conformance.mjs';

await conform('modal');
